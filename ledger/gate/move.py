"""The program `obtain` gets rights for a lane that has too few, from holds that are over (`free`)
and from other lanes.

Rule 1: a lane *gives* by one Update at its own endpoint, and the lane that is short *takes over* by
one at its own. Both cells are cumulative, and a take-over compares its old cell, so a crash, a
loss, a late copy or a repetition is harmless.
Rule 2: there is too little only if the lanes' own rights (moves cancel out) sum to too little, and
each lane answered.
Rule 3: a process that is short of rights ends the holds that are over, by its own clock; there is
no sweeper.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from ledger.core.errors import (
    GaveUp,
    LedgerError,
    OutcomeUnknown,
    OutOfReach,
    TableMissing,
    Unavailable,
)
from ledger.core.limit import SIDES
from ledger.core.requests import (
    GetMany,
    Instant,
    Now,
    Page,
    Pause,
    Program,
    Query,
    Update,
    Written,
)
from ledger.core.values import Lane
from ledger.gate import items, updates
from ledger.gate.filing import forget, is_full, roll, write
from ledger.gate.gate import Gate, name_of
from ledger.gate.gates import TRIES_MAX, Gates, View
from ledger.gate.left import Left, resets_at
from ledger.gate.past import outcomes_of
from ledger.lane.tail import Pages

NOTES_OF_PAGE = 25
NOTES_OF_LATER_PAGE = 50
"""Filed holds that are over, which end together. Who needs few of them pays for a first page; who
needs more has fewer requests a hold. Each batch of notes or late entries has 25 of them."""

ENDED_PAGES_MAX = 60
"""First pages of filed holds that are over, which one call ends in a lane: at most 1,500 holds, by
some 280 requests. A call that needs less ends what it needs, and the rest of a page."""


class Silent(NamedTuple):
    """This lane did not answer."""

    lane: Lane
    why: LedgerError | str


class AllAnswered(NamedTuple):
    """All lanes answered; their gates by name. This lane is still short."""

    known: dict[str, Gate]


def free(gates: Gates, gate: Gate, side: str | None = None, need: int = 0) -> Program[Gate]:
    """End holds that are over: all of them, or until the gate has the rights that are needed. The
    gate after that.

    Raises GaveUp where more of the filed holds have to end than one call ends: they have ended, so
    the next goes on.
    """
    now: Instant = yield Now()
    for _ in range(TRIES_MAX):
        over = dict(sorted(gate.over(now.wall_ms).items())[: updates.EXPIRED_MAX])
        if not over or _has(gate, side, need):
            break
        gate, _ = yield from _end(gates, gate, updates.end(gate.lane, gates.limit, over))
    upto = items.holds_until(now.wall_ms)
    pages = Pages(Query(items.hold_pk(gate.lane), None, upto, NOTES_OF_PAGE))
    most = left = ENDED_PAGES_MAX * NOTES_OF_PAGE
    while pages.more and not _has(gate, side, need):
        if side is not None and not left:
            raise GaveUp(
                f"{gate.lane}: {most:,} holds that were over have ended in this call, and to take "
                f"{need} it must end more of them. Nothing was decided. Call again: each call ends "
                "more."
            )
        page: Page = yield from gates.home(gate.lane, pages.read())
        left -= len(page.items)
        size = NOTES_OF_LATER_PAGE if side is None else min(NOTES_OF_LATER_PAGE, left)
        pages.next = pages.next._replace(limit=size)
        notes = dict(items.hold_of(gate.lane, item) for item in page.items)
        gate = yield from _of_page(gates, gate, notes)
    return gate


def _has(gate: Gate, side: str | None, need: int) -> bool:
    return side is not None and gate.rights[side] >= need


def _of_page(gates: Gates, gate: Gate, notes: dict[str, int]) -> Program[Gate]:
    """End the holds of a page that are not decided, then delete the notes of all that are.

    The item of a hold is a note: a filed hold's own token decides its end, as any token that is
    looked up. Nothing was filed since, and the gate does not know it.
    """
    for _ in range(TRIES_MAX):
        unknown = [token for token in notes if token not in gate.recent and token not in gate.held]
        look_up = outcomes_of(gate.lane, sorted(unknown))
        filed = (yield from gates.home(gate.lane, look_up)) if unknown else {}
        over = {token: notes[token] for token in unknown if token not in filed}
        # the note of a hold in the gate stays
        decided = [token for token in notes if token in gate.recent or token in filed]
        if over:
            update = updates.end(gate.lane, gates.limit, over, filed=gate.version)
            gate, ended = yield from _end(gates, gate, update)
            if not ended:
                continue
        yield from forget(gates, gate.lane, [*decided, *over])
        break
    return gate


def _end(gates: Gates, gate: Gate, update: Update) -> Program[tuple[Gate, bool]]:
    """The gate after an Update that ends holds, rolled where it is full; and whether they ended."""
    answer = yield from write(gates, gate.lane, update)
    if not isinstance(answer, Written):
        return gates.gate(gate.lane, answer), False
    gates.sold_out.forget(gate.lane.counter, *SIDES)
    gate = gates.gate(gate.lane, answer.item)
    if is_full(gate):
        with suppress(LedgerError):  # the holds have ended; the next call files
            gate = (yield from roll(gates, gate)) or gate
    return gate, True


def obtain(
    gates: Gates, lane: Lane, side: str, need: int, pause_ms: int = 0
) -> Program[Left | None]:
    """Get rights for a lane. None: there may be enough here now. Else how much all lanes together
    have left, which is too little. Raises OutOfReach where a lane did not answer, and what reading
    and writing this lane's gate raises.

    pause_ms: how long it waits for others to bring rights before it goes to another Region.
    """
    gate = yield from free(gates, (yield from gates.read(lane)), side, need)
    if gate.rights[side] >= need:
        return None
    match (yield from _rights_from_others(gates, gate, side, need, pause_ms)):
        case Silent(other, why):
            raise OutOfReach(
                f"{lane.counter}: {need} is more than {lane.region} has left, and the lane "
                f"{other}, which may have more, did not answer: {why} Nothing was decided. Call "
                "again later, with the same key if you gave one."
            ) from (why if isinstance(why, LedgerError) else None)
        case AllAnswered(known):
            left = sum(other.own(side) for other in known.values())  # Rule 2
            if left < need:
                ends = resets_at(lane, (yield Now())) if lane.retires_s else None
                # Where a lane is below 0, since a restore, all together may have nothing, and what
                # is here can be taken all the same: no refusal's condition would hold.
                available = left if left > 0 else max(0, known[name_of(lane)].rights[side])
                return Left(gates.bound(side, known.values()), available, resets_at=ends)
            # There is enough, but on its way: to a lane that is known, or to one that is not.
            is_delivered = yield from _deliver(gates, known, side)
            unknown = {name for other in known.values() for name in other.others} - known.keys()
            here = sum(other.rights[side] for other in known.values())
            if unknown and not is_delivered and here < need:
                raise OutOfReach(
                    f"{lane}: {need} is more than the lanes of these settings have left, and "
                    f"{min(unknown)}, which they do not know, has more. Nothing was decided. "
                    "Give this process the Regions and shards of the table's shape, then call "
                    "again."
                )
    return None


def _rights_from_others(
    gates: Gates, gate: Gate, side: str, need: int, pause_ms: int
) -> Program[Silent | AllAnswered | None]:
    """Take over rights on their way here, then get some from one lane after the other.

    None: there is enough.
    """
    lane = gate.lane
    others = [other for other in gates.lanes if other != lane]
    copies = (yield from _copies(gates, lane, others)) if others else {}
    for copy in copies.values():
        if gate.rights[side] < need:
            gate = yield from take_over(gates, gate, copy, side)
    known, silent = {name_of(lane): gate}, list[Silent]()
    views: dict[str, View] = {}
    down: dict[str, LedgerError | str] = {**gates.sold_out.silent((yield Now()))}
    for other in sorted(others, key=lambda other: _promise(copies.get(other), other, lane, side)):
        if gate.rights[side] >= need:
            return None
        if other.region in down:
            silent.append(Silent(other, down[other.region]))
            continue
        if pause_ms and other.region != lane.region:
            yield Pause(pause_ms)
            gate, pause_ms = (yield from gates.read(lane)), 0
            if gate.rights[side] >= need:
                return None
        try:
            there = copies.get(other)
            if there is None:
                there = yield from gates.read(other, views)
            elif there.rights[side] <= 0:
                # it was there: if it is gone now, an older view may not show that
                there = yield from gates.read(other)
            there, gate = yield from _rights_from(gates, gate, there, side, need)
            known[name_of(other)] = there
        except LedgerError as error:
            silent.append(Silent(other, error))
            # A Region that does not answer, or has no replica yet, gets one request for all lanes.
            is_down = isinstance(error, Unavailable | OutcomeUnknown | TableMissing)
            if is_down and other.region != gates.here:
                down[other.region] = error
                # one answer that was lost says nothing of the next
                if not isinstance(error, OutcomeUnknown):
                    gates.sold_out.note_silent(other.region, error, (yield Now()))
    if gate.rights[side] >= need:
        return None
    return silent[0] if silent else AllAnswered(known | {name_of(lane): gate})


def _copies(gates: Gates, lane: Lane, others: list[Lane]) -> Program[dict[Lane, Gate]]:
    """The other gates as the lane's home has them, perhaps old."""
    found = yield gates.at(lane, GetMany(tuple(map(items.gate_key, others)), consistent=False))
    there = zip(others, found, strict=True)
    return {other: gates.gate(other, item) for other, item in there if item}


def take_over(gates: Gates, gate: Gate, giver: Gate, side: str) -> Program[Gate]:
    """Take over what the giver has given so far. The gate after that."""
    cell = name_of(giver.lane), side
    given = giver.given.get((name_of(gate.lane), side), 0)
    for _ in range(TRIES_MAX):
        if given <= gate.got.get(cell, 0):
            break
        answer = yield from write(gates, gate.lane, updates.take_over(gate, cell, given))
        gate = gates.gate(gate.lane, answer.item if isinstance(answer, Written) else answer)
    return gate


def _promise(copy: Gate | None, other: Lane, lane: Lane, side: str) -> tuple[bool, int]:
    """The order of lanes: those of the same Region first, then those with most rights."""
    return other.region != lane.region, -(copy.rights[side] if copy else 0)


def _rights_from(
    gates: Gates, gate: Gate, there: Gate, side: str, need: int
) -> Program[tuple[Gate, Gate]]:
    """Get rights from another lane, until there is enough here or nothing more there: (its gate,
    this gate). If many want rights for one lane at once, the first gets them: the others see that
    in the answers, and take them over.
    """
    other = there.lane
    freed = False
    for _ in range(TRIES_MAX):
        gate = yield from take_over(gates, gate, there, side)
        if gate.rights[side] >= need:
            break
        if there.rights[side] <= 0:
            if freed:
                break
            # before it counts as empty, the holds there that are over end
            lacking = need - gate.rights[side]
            there = yield from free(gates, there, side, lacking)
            freed = there.rights[side] < lacking
            continue
        amount = min(there.rights[side], max(need - gate.rights[side], _share(there, gate, side)))
        give = updates.give(there, (name_of(gate.lane), side), amount)
        answer = yield from write(gates, other, give)
        item = answer.item if isinstance(answer, Written) else answer
        there = gates.gate(other, item) if item else (yield from gates.read(other))
    return there, gate


def _share(giver: Gate, taker: Gate, side: str) -> int:
    """How much the giver can do without, by how fast tokens came to both lately: so that no busy
    lane fetches seat by seat.
    """
    return int(giver.rights[side] * taker.pace / (taker.pace + giver.pace))


def _deliver(gates: Gates, known: Mapping[str, Gate], side: str) -> Program[bool]:
    """Take over, on each lane's behalf, what others gave to it and it has not taken over.

    Whether there was any.
    """
    is_delivered = False
    for giver in known.values():
        for name, of in giver.given:
            if of == side and name in known:
                after = yield from take_over(gates, known[name], giver, side)
                is_delivered |= after != known[name]
    return is_delivered
