"""The program `free`: holds whose time is over end, in the gate and among those that were filed.

Rule 1: whoever is short of rights ends them, by its own clock, until there is enough; there is no sweeper.
Rule 2: an end in the gate asks that the entry is the very one that was seen. The end of a filed one is decided by its
own token, as any token that is looked up: nothing was filed since, and the gate does not know it.
Rule 3: the item of a hold is a note. That of a decided token is only deleted; that of a hold in the gate is left alone.
Rule 4: a page of notes is looked up and ended together. What ended leaves the gate on the way, when it is full.
"""

from contextlib import suppress

from ledger.errors import LedgerError
from ledger.gate import items, updates
from ledger.gate.gate import Gate
from ledger.gate.gates import TRIES_MAX, Gates
from ledger.gate.look_up import outcomes_of
from ledger.gate.roll import roll, write
from ledger.limit import SIDES
from ledger.paging import Pages
from ledger.requests import DeleteMany, Instant, Now, Page, Program, Query, Update, Written, keyed
from ledger.values import Lane

NOTES_OF_PAGE = 25


def free(gates: Gates, gate: Gate, side: str | None = None, need: int = 0) -> Program[Gate]:
    """The gate after holds that are over have ended there: all of them, or until it has the rights that are needed.

    Raises the TableErrors, GaveUp and DamagedItem.
    """
    now: Instant = yield Now()
    for _ in range(TRIES_MAX):
        over = dict(sorted(gate.over(now.wall_ms).items())[: updates.EXPIRED_MAX])
        if not over or _has(gate, side, need):
            break
        gate, _ = yield from _end(gates, gate, updates.expire(gate.lane, gates.limit, over))
    pages = Pages(Query(items.hold_pk(gate.lane), None, items.holds_until(now.wall_ms), NOTES_OF_PAGE))
    while pages.more and not _has(gate, side, need):
        page: Page = yield from gates.home(gate.lane, pages.read())
        gate = yield from _of_page(gates, gate, dict(items.hold_of(gate.lane, item) for item in page.items))
    return gate


def _has(gate: Gate, side: str | None, need: int) -> bool:
    return side is not None and gate.rights[side] >= need


def _of_page(gates: Gates, gate: Gate, notes: dict[str, int]) -> Program[Gate]:
    """End what is not decided, then delete the notes of all that are."""
    for _ in range(TRIES_MAX):
        unknown = [token for token in notes if token not in gate.recent and token not in gate.held]
        filed = (yield from outcomes_of(gates, gate.lane, unknown)) if unknown else {}
        over = {token: notes[token] for token in unknown if token not in filed}
        gone = {token: notes[token] for token in notes if token in gate.recent or token in filed} | over
        ended = True
        if over:
            update = updates.expire(gate.lane, gates.limit, over, gate.version)
            gate, ended = yield from _end(gates, gate, update)
        if ended:
            yield from forget(gates, gate.lane, gone)
            break
    return gate


def _end(gates: Gates, gate: Gate, update: Update) -> Program[tuple[Gate, bool]]:
    """The gate after an Update that ends holds, filed where it is full; and whether they ended."""
    answer = yield from write(gates, gate.lane, update)
    if not isinstance(answer, Written):
        return gates.gate(gate.lane, answer), False
    gates.sold_out.forget(gate.lane.counter, *SIDES)
    gate = gates.gate(gate.lane, answer.item)
    if gate.fullness(gates.filing, 1) >= 2:
        with suppress(LedgerError):  # the holds have ended; whoever comes next files
            gate = (yield from roll(gates, gate)) or gate
    return gate, True


def forget(gates: Gates, lane: Lane, notes: dict[str, int]) -> Program[None]:
    """Delete the notes of holds that ended; one that stays is found to be decided, and deleted then."""
    if notes:
        keys = tuple(keyed(items.hold_key(lane, token)) for token in notes)
        yield gates.at(lane, DeleteMany(keys))
