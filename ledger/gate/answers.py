"""What the caller of a limited counter is told of a decision: a receipt, a hold, or an error.

Rule 1: a token is decided once, so a second call with it is told what the first one was, for ever.
Rule 2: who asks for something else under a token that is taken gets a TokenConflict, or how the hold ended.
Rule 3: an error of a change carries its delta; one of a hold carries none, because to apply it would be an add.
"""

from collections.abc import Mapping, Sequence
from typing import NoReturn

from ledger.errors import HoldEnded, InvalidTime, LedgerError, LimitReached, TokenConflict
from ledger.gate import decide, end, group, updates
from ledger.gate.decide import Decision
from ledger.gate.gates import Gates
from ledger.gate.hold_tokens import until_ms
from ledger.gate.look_up import find
from ledger.gate.outcome import EXPIRED, REFUSED, RELEASED, change_of
from ledger.packing import Outcome, failed
from ledger.requests import Instant, Now, Program
from ledger.values import Delta, Receipt

STATES: Mapping[int | None, str] = {RELEASED: "released", EXPIRED: "expired"}


def add(gates: Gates, delta: Delta) -> Program[Receipt]:
    """Raises LimitReached, OutOfReach, TokenConflict, GateLost, LimitMismatch, GaveUp, DamagedItem and the TableErrors,
    each with `delta`."""
    try:
        return _receipt(delta, (yield from decide.decide_change(gates, delta)))
    except LedgerError as error:
        error.delta = delta
        raise


def add_many(gates: Gates, deltas: Sequence[Delta]) -> Program[list[Outcome]]:
    """An answer for each of some changes of one lane, in order; those of a token go together."""
    first: dict[str, Delta] = {}
    for delta in deltas:
        first.setdefault(delta.token, delta)
    todo = list(first.values())
    decided: group.Decisions = {}
    for start in range(0, len(todo), updates.GROUP_MAX):
        some = {delta.token: delta.change for delta in todo[start : start + updates.GROUP_MAX]}
        decided |= yield from group.add_group(gates, todo[0].lane, some)
    return [_answer(delta, decided, is_first=delta is first[delta.token]) for delta in deltas]


def _answer(delta: Delta, decided: Mapping[str, Decision | LedgerError], *, is_first: bool) -> Outcome:
    decision = decided[delta.token]
    try:
        if isinstance(decision, LedgerError):
            return failed(decision, delta)
        return _receipt(delta, decision if is_first else Decision(decision.known, before=True))
    except LedgerError as error:
        error.delta = delta
        return error


def hold(gates: Gates, delta: Delta) -> Program[None]:
    """Returns when the hold is granted, now or before. Raises HoldEnded, and what `add` does, without a delta."""
    now: Instant = yield Now()
    if until_ms(delta.token) <= now.wall_ms:  # a retry is told what became of it; nothing new is granted
        found, _ = yield from find(gates, delta.lane, delta.token)
        if found is None:
            raise InvalidTime("The hold would be over already: `expires` counts from `at`.")
        decision = Decision(found, before=True)
    else:
        decision = yield from decide.decide_hold(gates, delta)
    known = decision.known
    if known.held not in (None, delta.change):
        _conflict(delta, f"a hold of {known.held}")
    if known.outcome == REFUSED:
        _refused(delta, decision)
    if known.outcome is not None:
        raise ended(delta, known.outcome)


def capture(gates: Gates, held: Delta, amount: int) -> Program[Receipt]:
    """Raises HoldEnded, NoSuchHold and what `add` does, without a delta."""
    decision = yield from end.end(gates, held, amount)
    if decision.known.outcome != amount:
        raise ended(held, decision.known.outcome)
    return Receipt("replayed" if decision.before else "recorded", Delta(held.lane, held.token, amount))


def release(gates: Gates, held: Delta) -> Program[None]:
    """Raises as `capture`; nothing where it was released before."""
    decision = yield from end.end(gates, held, RELEASED)
    if decision.known.outcome != RELEASED:
        raise ended(held, decision.known.outcome)


def ended(held: Delta, outcome: int | None) -> HoldEnded:
    state, actual = STATES.get(outcome, "captured"), change_of(outcome or 0)
    what = f"captured: {actual} of {held.change} counts" if state == "captured" else f"{state}: nothing of it counts"
    return HoldEnded(f"{held.lane.counter}: the hold {held.token} was {what}. Nothing was written.", state, actual)


def _receipt(delta: Delta, decision: Decision) -> Receipt:
    known = decision.known
    if known.outcome == REFUSED:
        _refused(delta, decision)
    if known.held is not None:
        _conflict(delta, f"a hold of {known.held}")
    if known.outcome in STATES:
        _conflict(delta, f"a hold that was {STATES[known.outcome]}")
    if known.outcome != delta.change:
        _conflict(delta, f"a change of {known.outcome}")
    return Receipt("replayed" if decision.before else "recorded", delta)


def _refused(delta: Delta, decision: Decision) -> NoReturn:
    (limit, available), remembered = decision.left, decision.remembered
    detail = f" of {limit}; all Regions together had {available} left" if limit is not None else ""
    detail += " up to a second ago" if remembered else ""
    raise LimitReached(
        f"{delta.lane.counter}: {delta.change} would pass the limit{detail}. Nothing counts, and "
        "that is final for this token: a new attempt needs a new idempotency key.",
        limit=limit,
        available=available,
        remembered=remembered,
    )


def _conflict(delta: Delta, what: str) -> NoReturn:
    raise TokenConflict(
        f"{delta.lane.counter}: the token {delta.token} already stands for {what}, not for {delta.change}. Nothing was "
        "written; what it stands for counts. A new change needs a new idempotency key."
    )
