"""The programs by which a gate decides a change, a group of changes and a hold; and `set_limit`.

Rule 1: one conditional Update decides a token, once, and a refusal is a decision, too; a second
call gets the answer of the first, for ever. The Update's condition is that the token is open. Where
the gate alone cannot show that the token is new, the program looks it up first, and the condition
is that nothing was filed since.
Rule 2: where the rights are too few, the program gets some from the other lanes. It refuses a
change only if all lanes together have too few, and only while the rights here are still too few.
Rule 3: if a lane does not answer, nothing is decided (OutOfReach).
Rule 4: if the process remembers that a side is sold out, it refuses at once, if the rights here are
still too few.
Rule 5: the Update of a group has the conditions of each of its tokens, and takes the rights that
they need together. If it fails, tokens that are decided get their answers, those that may have been
filed are looked up, and the others travel again. Where the rights do not suffice for all, each is
decided alone: one refusal does not fail the others. What the group's Update may have written stays
in doubt until a decision says it.
Rule 6: an error of a change carries its delta; an error of a hold carries none, because applying it
would be an add.
Rule 7: a tighter limit takes rights away, so the program obtains them first; a wider one brings
rights with it. Both are computed from the limit in the gate that had the first rights. That gate is
written IF nobody has set the limit since it was read, so of two calls at once one reads again.
Whether a side is limited is for the counter's life.
Rule 8: a step that has to count in the end, as a refund has, is decided only where there is room
for it. Until then its token stays open, so that the next attempt costs what this one did.
Rule 9: setting a limit makes this process forget what was sold out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ledger.core import tokens
from ledger.core.errors import (
    DamagedItem,
    InvalidInput,
    InvalidTime,
    LedgerError,
    LimitReached,
    shown,
)
from ledger.core.limit import DOWN, SIDES, UP
from ledger.core.ranges import CHANGE_MAX
from ledger.core.requests import Doubt, Instant, Now, Program, Written
from ledger.core.tokens import until_ms
from ledger.core.values import Delta, Lane, Receipt
from ledger.gate import items, updates
from ledger.gate.answer import Decision, check_granted, receipt
from ledger.gate.carry import carry
from ledger.gate.filing import looks, perhaps_roll, slack_after, write
from ledger.gate.gate import REFUSED, Gate
from ledger.gate.gates import TRIES_MAX, Gates, gave_up
from ledger.gate.left import Left
from ledger.gate.move import obtain
from ledger.gate.past import find, known_in, look_up, look_up_all
from ledger.gate.repeated import Decisions, all_shown_now, shown_now
from ledger.lane.add import Outcome, failed

PAUSE_MS = 200
"""A call that is short waits up to so long, two round trips across Regions, and reads again before
it goes to another
Region: of many that are short at once, the first to go brings enough for all."""


def decide_change(
    gates: Gates,
    delta: Delta,
    *,
    hold: bool = False,
    name: str | None = None,
    refuses: bool = True,
    before: Doubt | None = None,
    seen: int | None = None,
) -> Program[Decision]:
    """Decide a change or a hold. Raises OutOfReach, GateLost, LimitMismatch, GaveUp, DamagedItem
    and TableErrors.

    name: of the hold, which is decided in its place: saga/named.py. refuses: a change for which too
    little is left is refused, for ever. Otherwise it stays undecided: the answer has neither an
    outcome nor a hold, but what is left.
    before: what an earlier request that carried it left open. seen: the gate's version at which the
    token was looked up, and not found.
    """
    with Doubt(before) as doubt:
        return (yield from _decided(gates, delta, hold, name, refuses, doubt, seen))


def _decided(
    gates: Gates,
    delta: Delta,
    hold: bool,
    name: str | None,
    refuses: bool,
    doubt: Doubt,
    seen: int | None,
) -> Program[Decision]:
    lane, token = delta.lane, name or delta.token
    # the right that it takes, and how much of it
    side, need = DOWN if delta.change < 0 else UP, abs(delta.change)
    slack_ms: int | None = None
    left: Left | None = None  # too little is left: the change is refused
    for _ in range(TRIES_MAX):
        began: Instant = yield Now()
        if refuses:
            left = left or gates.sold_out.knows(lane.counter, side, need, began)
        if left is not None:
            update = updates.refuse(lane, gates.limit, token, delta.change, seen)
        elif hold:
            update = updates.hold(lane, gates.limit, delta.token, delta.change, seen, name=name)
        else:
            change = {token: delta.change}
            update = updates.decide(lane, gates.limit, change, seen, slack_ms, shows=looks(token))
        answer = doubt.note((yield from write(gates, lane, update)))
        if isinstance(answer, Written):
            if left is None:
                gates.sold_out.changed(lane.counter, delta.change)
            yield from perhaps_roll(gates, lane, answer.item, delta.token)
            if left is not None:
                return Decision(REFUSED, before=False, left=left)
            return (
                Decision(held=delta.change, before=False)
                if hold
                else Decision(delta.change, before=False)
            )
        if not answer:
            yield from gates.create(lane)
            continue
        gate = gates.gate(lane, answer)
        if (known := known_in(gate, token)) is not None:
            return known
        if not gate.is_fresh(token) and gate.version != seen:
            if (found := (yield from look_up(gates, lane, token))) is not None:
                return found
            seen, slack_ms = gate.version, slack_after(gate, token)
        elif need == 0 or not gates.limit.has(side) or gate.rights[side] >= need:
            gates.sold_out.forget(lane.counter, side)  # enough came meanwhile
            left = None
        elif left is None:
            left = None if refuses else gates.sold_out.knows(lane.counter, side, need, began)
            left = left or (yield from _short(gates, delta, side, began))
            if left is not None and not refuses:
                return Decision(before=False, left=left)
    raise gave_up(lane)


def _short(gates: Gates, delta: Delta, side: str, began: Instant) -> Program[Left | None]:
    """How much is left, where that is too little though every other lane gave what it has."""
    lane, pause_ms = delta.lane, tokens.draw(delta.token, PAUSE_MS)
    left = yield from obtain(gates, lane, side, abs(delta.change), pause_ms)
    if left is not None and side == UP and (yield from carry(gates)):
        left = None
    if left is not None:  # whatever needs more than is left is short, too
        gates.sold_out.note(lane.counter, side, (left.available or 0) + 1, began, left)
    return left


TRIES = 8  # how often a group travels before each goes alone


def add_group(gates: Gates, lane: Lane, changes: Mapping[str, int]) -> Program[Decisions]:
    """A decision or an error for each token, GROUP_MAX at most.

    It raises none of the errors that `add` raises.
    """
    decided: Decisions = {}
    left = dict(changes)
    doubt = Doubt()
    seen: int | None = None
    slack_ms: int | None = None
    for _ in range(TRIES):
        if len(left) < 2:
            break
        try:
            update = updates.decide(lane, gates.limit, left, seen, slack_ms)
            answer = doubt.note((yield from write(gates, lane, update)))
            if isinstance(answer, Written):
                decided |= {token: Decision(change, before=False) for token, change in left.items()}
                gates.sold_out.changed(lane.counter, sum(left.values()))
                yield from perhaps_roll(gates, lane, answer.item, max(left), len(left))
                return decided
            if not answer:
                yield from gates.create(lane)
                continue
            gate = gates.gate(lane, answer)
            there = {token: known for token in left if (known := known_in(gate, token)) is not None}
            unsure = [token for token in left if token not in there and not gate.is_fresh(token)]
            if not there and (not unsure or seen == gate.version):
                break  # the rights are too few
            if unsure:
                there |= yield from look_up_all(gates, lane, sorted(unsure))
        except LedgerError as error:
            doubt.note(error)
            break  # each one learns its outcome alone, and the group's Update may have written it
        decided |= there
        left = {token: change for token, change in left.items() if token not in there}
        seen = gate.version if len(unsure) > len(there.keys() & set(unsure)) else None
        late = [slack for token in unsure if (slack := slack_after(gate, token)) is not None]
        slack_ms = max(late, default=None)
    for token, change in left.items():
        try:
            alone = decide_change(gates, Delta(lane, token, change), before=doubt, seen=seen)
            decided[token] = yield from alone
        except LedgerError as error:
            decided[token] = error
    return decided


def add(gates: Gates, delta: Delta) -> Program[Receipt]:
    """Decide a change.

    Raises LimitReached, TokenConflict, and what `decide_change` raises, each with `delta`.
    """
    try:
        return receipt(
            delta, (yield from shown_now(gates, delta, (yield from decide_change(gates, delta))))
        )
    except LedgerError as error:
        error.delta = delta
        raise


def add_if_room(gates: Gates, delta: Delta) -> Program[Receipt | None]:
    """As `add`, but where too little is left nothing is decided, and it returns None: the same
    may come again.
    """
    try:
        decision = yield from decide_change(gates, delta, refuses=False)
        return (
            None if decision.outcome is None and decision.held is None else receipt(delta, decision)
        )
    except LedgerError as error:
        error.delta = delta
        raise


def add_many(gates: Gates, deltas: Sequence[Delta]) -> Program[list[Outcome]]:
    """Decide several changes of one lane: an outcome for each, in order.

    Changes with one token are decided once.
    """
    first: dict[str, Delta] = {}
    for delta in deltas:
        first.setdefault(delta.token, delta)
    todo = list(first.values())
    decided: Decisions = {}
    for start in range(0, len(todo), updates.GROUP_MAX):
        group = {delta.token: delta.change for delta in todo[start : start + updates.GROUP_MAX]}
        decided |= yield from add_group(gates, todo[0].lane, group)
    decided = yield from all_shown_now(
        gates, decided, {token: delta.change for token, delta in first.items()}
    )
    return [_answer(delta, decided, is_first=delta is first[delta.token]) for delta in deltas]


def _answer(
    delta: Delta, decided: Mapping[str, Decision | LedgerError], *, is_first: bool
) -> Outcome:
    decision = decided[delta.token]
    try:
        if isinstance(decision, LedgerError):
            return failed(decision, delta)
        return receipt(delta, decision if is_first else replace(decision, before=True))
    except LedgerError as error:
        error.delta = delta
        return error


def hold(gates: Gates, delta: Delta) -> Program[None]:
    """Grant a hold, unless it was granted before.

    Raises HoldEnded, and what `add` raises, without a delta.
    """
    now: Instant = yield Now()
    if until_ms(delta.token) <= now.wall_ms:  # a retry learns the outcome; no new hold is granted
        decision, _ = yield from find(gates, delta.lane, delta.token)
        if decision is None:
            raise InvalidTime("The hold would be over already: `expires` counts from `at`.")
    else:
        decision = yield from decide_change(gates, delta, hold=True)
    check_granted(delta, (yield from shown_now(gates, delta, decision)))


def set_limit(gates: Gates, floor: int | None, ceiling: int | None) -> Program[Gate]:
    """Set another limit; the gate with it. A bound that is None stays as it is. Raises LimitReached
    when the value with all holds is beyond it (nothing was written), InvalidInput for wrong bounds,
    and what `add` raises.
    """
    given = _checked(gates, {DOWN: floor, UP: ceiling})
    with Doubt() as doubt:
        return (yield from _limit_set(gates, given, doubt))


def _limit_set(gates: Gates, given: Mapping[str, int | None], doubt: Doubt) -> Program[Gate]:
    lane = gates.first
    for _ in range(TRIES_MAX):
        gate = yield from gates.read(lane)
        for side, name in items.BOUNDS.items():
            if gates.limit.has(side) and gate.bounds[side] is None:
                raise _lacks(gate, name)
        wanted = {side: gate.bounds[side] if given[side] is None else given[side] for side in SIDES}
        low, high = wanted[DOWN], wanted[UP]
        if low is not None and high is not None and low > high:
            raise InvalidInput(f"The floor {low} is above the ceiling {high}.")
        if gate.bounds == wanted and not gate.passed_on:
            # perhaps an earlier try set it and got no answer
            gates.sold_out.forget(lane.counter, *SIDES)
            return gate
        short = [
            (side, need) for side, need in gate.taken_by(wanted).items() if need > gate.rights[side]
        ]
        for side, need in short:
            if (left := (yield from obtain(gates, lane, side, need))) is not None:
                beyond = LimitReached(
                    f"{lane.counter}: the value and its holds are beyond floor={low}, "
                    f"ceiling={high}. Nothing was written. Set a wider limit, or wait until holds "
                    "end.",
                    counter=lane.counter,
                    **left._asdict(),
                )
                # an earlier attempt may have set it before others set another
                beyond.is_decision = False
                raise beyond
        if short:
            continue
        answer = doubt.note(
            (yield from write(gates, lane, updates.set_limit(gate, gates.limit, wanted)))
        )
        if isinstance(answer, Written):
            gates.sold_out.forget(lane.counter, *SIDES)
            return gates.gate(lane, answer.item)
        if answer and "epoch" not in answer:
            raise _lacks(gate, "epoch")
    raise gave_up(lane)


def _lacks(gate: Gate, name: str) -> DamagedItem:
    """The error of the gate that had the first rights where it lacks an attribute of the limit,
    which it must have.
    """
    key = items.gate_key(gate.lane)
    return DamagedItem(
        key.pk, key.sk, f"{name} is missing, though the counter's first rights were here"
    )


def _checked(gates: Gates, wanted: Mapping[str, int | None]) -> Mapping[str, int | None]:
    limit = gates.limit
    if limit.region is None:
        raise InvalidInput(f"{limit} names no region, so no gate has a limit to set.")
    for side in SIDES:
        amount = wanted[side]
        if amount is not None and not limit.has(side):
            raise InvalidInput(
                f"{limit} has no such side, and a counter keeps its sides for its life."
            )
        if amount is not None and (type(amount) is not int or abs(amount) > CHANGE_MAX):
            raise InvalidInput(
                f"A limit is an int of magnitude at most 10**18, not {shown(amount)}."
            )
    if all(amount is None for amount in wanted.values()):
        raise InvalidInput("set_limit takes a floor, a ceiling or both.")
    return wanted
