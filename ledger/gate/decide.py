"""The programs by which a gate decides a change, a group of changes, a part of a change and a hold.

Rule 1: one conditional Update decides a token, once, and a refusal is a decision, too; a second
call gets the answer of the first, for ever. The Update's condition is that the token is open. Where
the gate alone cannot show that, the program looks the token up first, and the condition is that
nothing was filed since.
Rule 2: where the rights are too few, the program gets some from the other lanes. It refuses a
change only if all lanes together have too few, and only while the rights here are still too few.
Rule 3: if a lane does not answer, nothing is decided (OutOfReach).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ledger.core import tokens
from ledger.core.errors import InvalidTime, LedgerError
from ledger.core.limit import DOWN, UP
from ledger.core.requests import Instant, Item, Now, Program, Update, Written
from ledger.core.running import Doubt
from ledger.core.tokens import until_ms
from ledger.core.values import Delta, Lane, Receipt
from ledger.gate import updates
from ledger.gate.answer import Decision, Open, check_granted, counted, receipt, state_of
from ledger.gate.carry import carry
from ledger.gate.filing import looks, perhaps_roll, slack_after, write
from ledger.gate.gate import REFUSED, Gate
from ledger.gate.gates import TRIES_MAX, Gates, gave_up
from ledger.gate.left import Left
from ledger.gate.move import obtain
from ledger.gate.past import find, look_up, look_up_all
from ledger.gate.repeated import Decisions, all_shown_now, shown_now
from ledger.lane.add import Outcome, failed

PAUSE_MS = 200
"""A call that is short waits up to so long, two round trips across Regions, and reads again before
it goes to another Region: of many that are short at once, the first often brings enough for all."""


class LookedUp(NamedTuple):
    """What the Update of open tokens says of the look-ups before it.

    version: of the gate before the last look-up, which found none of them; None: the gate alone
    must show that they are new. slack_ms: how much later than others such tokens come, for the gate
    to keep; None: what it keeps stays.
    """

    version: int | None = None
    slack_ms: int | None = None


def decide_change(
    gates: Gates,
    delta: Delta,
    *,
    hold: bool = False,
    name: str | None = None,
    refuses: bool = True,
    up_to: bool = False,
    before: Doubt | None = None,
    version: int | None = None,
) -> Program[Decision]:
    """Decide a change or a hold. Raises OutOfReach, GateLost, LimitMismatch, GaveUp, DamagedItem
    and TableErrors.

    name: of the hold, which is decided in its place: client/named_holds.py. refuses: a change for
    which too little is left is refused, for ever; else it stays undecided, and the answer has
    neither an outcome nor a hold, but what is left. up_to: a change for which too little is left
    counts as far as that goes, and is refused where it is nothing. before: what an earlier request
    that carried it left open. version: of the gate before the token was looked up, and not found.
    """
    lane, token = delta.lane, name or delta.token
    # `delta` becomes what the next Update is of: all, a part, or the least that a refusal refuses.
    whole = least = delta
    if up_to:
        least = replace(delta, change=1 if delta.change > 0 else -1)
    looked_up = LookedUp(version)
    short: Left | None = None  # what is left, once that is known to be too little
    with Doubt(before) as doubt:
        for _ in range(TRIES_MAX):
            began: Instant = yield Now()
            if refuses:
                # Who remembers that a side is sold out writes the refusal at once. Rule 6: what is
                # remembered makes no part smaller, because more may have come since.
                short = short or gates.sold_out.knows(lane.counter, *_need(least), began)
            if short is not None:
                delta = least
            update = _update(gates, delta, looked_up, short, hold, name)
            answer: Item | Written | None = doubt.note((yield from write(gates, lane, update)))
            if not answer:  # there is no gate
                answer = doubt.note((yield from gates.create(lane, first=update)))
            if isinstance(answer, Written):
                return (yield from _written(gates, delta, short, hold, answer.item))
            if not answer:
                continue
            gate = gates.gate(lane, answer)
            match state_of(gate, token, looked_up.version):
                case Decision() as known:
                    return known
                case Open.PERHAPS:
                    if (found := (yield from look_up(gates, lane, token))) is not None:
                        return found
                    looked_up = LookedUp(gate.version, slack_after(gate, token))
                case Open.FRESH | Open.LOOKED_UP:
                    short = yield from _short(gates, gate, delta, short, began, refuses)
                    if short is not None and not refuses:
                        return Decision(before=False, left=short)
                    if up_to:
                        delta, short = _part(delta, least, whole, short)
        raise gave_up(lane)


def _part(
    delta: Delta, least: Delta, whole: Delta, short: Left | None
) -> tuple[Delta, Left | None]:
    """What the next Update is of, after the last one was of `delta`, and what it is refused for."""
    if short is not None and short.available:
        # Rule 4: a part is what all lanes have, after each of them answered, and after a carry
        # brought nothing.
        return replace(whole, change=least.change * short.available), None
    if short is None and delta is least:
        # Rule 5: something came before the refusal was written. Only all of the change is not less
        # than what there is now.
        return whole, None
    return delta, short


def _update(
    gates: Gates,
    delta: Delta,
    looked_up: LookedUp,
    short: Left | None,
    hold: bool,
    name: str | None,
) -> Update:
    """The Update that decides the token, if that is open: it takes the rights, or refuses the
    change if these are still too few.
    """
    lane, token, change = delta.lane, delta.token, delta.change
    if short is not None:
        return updates.refuse(lane, gates.limit, name or token, change, looked_up.version)
    if hold:
        return updates.hold(lane, gates.limit, token, change, looked_up.version, name=name)
    return updates.decide(lane, gates.limit, {token: change}, *looked_up, shows=looks(token))


def _written(
    gates: Gates, delta: Delta, short: Left | None, hold: bool, item: Item
) -> Program[Decision]:
    """The decision that this call wrote. item: the gate since then, or nothing."""
    if short is None:
        gates.sold_out.changed(delta.lane.counter, delta.change)
    if item:
        yield from perhaps_roll(gates, delta.lane, item, delta.token)
    if short is not None:
        return Decision(REFUSED, before=False, left=short)
    if hold:
        return Decision(held=delta.change, before=False)
    return Decision(delta.change, before=False)


def _short(
    gates: Gates, gate: Gate, delta: Delta, short: Left | None, began: Instant, refuses: bool
) -> Program[Left | None]:
    """Why the Update of an open token failed: the rights are too few, though every other lane gave
    what it has; so much is left. None: they suffice by now.

    short: why it failed before.
    """
    lane, memory, (side, need) = delta.lane, gates.sold_out, _need(delta)
    if need == 0 or not gates.limit.has(side) or gate.rights[side] >= need:
        memory.forget(lane.counter, side)  # enough came meanwhile
        return None
    if short is not None:
        return short
    if not refuses and (left := memory.knows(lane.counter, side, need, began)) is not None:
        return left
    left = yield from obtain(gates, lane, side, need, tokens.draw(delta.token, PAUSE_MS))
    if left is not None and side == UP and (yield from carry(gates)):
        return None
    if left is not None:  # whatever needs more than is left is short, too
        memory.note(lane.counter, side, (left.available or 0) + 1, began, left)
    return left


def _need(delta: Delta) -> tuple[str, int]:
    """The side whose rights a change takes, and how many."""
    return DOWN if delta.change < 0 else UP, abs(delta.change)


TRIES = 8  # how often a group travels before each goes alone


def add_group(gates: Gates, lane: Lane, changes: Mapping[str, int]) -> Program[Decisions]:
    """A decision or an error for each token, GROUP_MAX at most.

    It raises none of the errors that `add` raises. The Update of a group has the conditions of each
    of its tokens, and takes the rights that they need together.
    """
    decided: Decisions = {}
    todo = dict(changes)
    doubt = Doubt()
    looked_up = LookedUp()
    for _ in range(TRIES):
        if len(todo) < 2:
            break
        try:
            update = updates.decide(lane, gates.limit, todo, *looked_up)
            answer: Item | Written | None = doubt.note((yield from write(gates, lane, update)))
            if not answer:  # there is no gate
                answer = doubt.note((yield from gates.create(lane, first=update)))
            if isinstance(answer, Written):
                decided |= {token: Decision(change, before=False) for token, change in todo.items()}
                gates.sold_out.changed(lane.counter, sum(todo.values()))
                yield from perhaps_roll(gates, lane, answer.item, max(todo), len(todo))
                return decided
            if not answer:
                continue
            gate = gates.gate(lane, answer)
            states = {token: state_of(gate, token, looked_up.version) for token in todo}
            if {*states.values()} <= {Open.FRESH, Open.LOOKED_UP}:
                break  # the rights are too few for all: one refusal must not fail the others
            known, looked_up = yield from _known(gates, gate, states)
        except LedgerError as error:
            doubt.note(error)
            break  # each one learns its outcome alone, and the group's Update may have written it
        decided |= known
        todo = {token: change for token, change in todo.items() if token not in known}
    for token, change in todo.items():
        alone = decide_change(
            gates, Delta(lane, token, change), before=doubt, version=looked_up.version
        )
        try:
            decided[token] = yield from alone
        except LedgerError as error:
            decided[token] = error
    return decided


def _known(
    gates: Gates, gate: Gate, states: Mapping[str, Decision | Open]
) -> Program[tuple[dict[str, Decision], LookedUp]]:
    """The tokens of a group that are decided, by the gate or by what it filed, and what the next
    Update, of the others, says of the look-up.
    """
    known = {token: state for token, state in states.items() if isinstance(state, Decision)}
    # Those that were looked up are looked up again with the others: others wrote the gate since.
    unsure = [t for t, state in states.items() if state in (Open.PERHAPS, Open.LOOKED_UP)]
    found = (yield from look_up_all(gates, gate.lane, sorted(unsure))) if unsure else {}
    late = [slack for token in unsure if (slack := slack_after(gate, token)) is not None]
    version = gate.version if len(unsure) > len(found) else None
    return known | found, LookedUp(version, max(late, default=None))


def add(gates: Gates, delta: Delta) -> Program[Receipt]:
    """Decide a change.

    Raises LimitReached, TokenConflict, and what `decide_change` raises, each with `delta`.
    """
    try:
        decision = yield from decide_change(gates, delta)
        return receipt(delta, (yield from shown_now(gates, delta, decision)))
    except LedgerError as error:
        error.delta = delta
        raise


def add_up_to(gates: Gates, delta: Delta) -> Program[Receipt]:
    """Decide how much of a change counts: all of it, or as much as all lanes have. The receipt's
    delta has what counts.

    Raises as `add`, but without a delta: to apply that would ask for all or nothing, under a token
    that may stand for a part.
    """
    decision = yield from decide_change(gates, delta, up_to=True)
    decision = yield from shown_now(gates, delta, decision)
    return receipt(counted(delta, decision), decision)


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
