"""What a token stands for in a gate, and what its caller gets: a receipt, nothing for a hold, or an
error.

Rule 1: a call for something else under a token that is taken gets a TokenConflict, or the way in
which the hold ended.
"""

from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import NoReturn

from ledger.core.errors import HoldEnded, LimitReached, TokenConflict
from ledger.core.values import Delta, Receipt
from ledger.gate.gate import REFUSED, STATES, Gate, change_of
from ledger.gate.left import Left


@dataclass(frozen=True, slots=True)
class Decision:
    """What a token stands for: its outcome, or an open hold of this amount.

    before: it was decided before this call. left: of a refusal, how much was left.
    """

    outcome: int | None = None
    held: int | None = None
    before: bool = True
    left: Left = field(default=Left(), compare=False)

    @property
    def is_repeated(self) -> bool:
        """Whether it is a refusal of before."""
        return self.before and self.outcome == REFUSED


class Open(Enum):
    """What a token is that its gate does not know."""

    FRESH = auto()  # the gate alone shows that nobody decided it
    LOOKED_UP = auto()  # it was looked up and not found, and the gate has filed nothing since
    PERHAPS = auto()  # it may have been decided and filed: look it up


def state_of(gate: Gate, token: str, version: int | None) -> Decision | Open:
    """What a token is, as its gate was read. version: of the gate before the token was looked up,
    and not found.
    """
    if (known := known_in(gate, token)) is not None:
        return known
    if gate.is_fresh(token):
        return Open.FRESH
    return Open.LOOKED_UP if gate.version == version else Open.PERHAPS


def known_in(gate: Gate, token: str) -> Decision | None:
    """The decision of a token in the gate itself; None where the gate does not know it."""
    if token in gate.recent:
        return Decision(gate.recent[token])
    return Decision(held=gate.held[token]) if token in gate.held else None


def receipt(delta: Delta, decision: Decision) -> Receipt:
    """The receipt of a change.

    Raises LimitReached and TokenConflict where its token stands for something else.
    """
    if decision.outcome == REFUSED:
        raise refused(delta, decision)
    if decision.held is not None:
        _conflict(delta, f"a hold of {decision.held}")
    if decision.outcome in STATES:
        _conflict(delta, f"a hold that was {STATES[decision.outcome]}")
    if decision.outcome != delta.change:
        _conflict(delta, f"a change of {decision.outcome}", decision.outcome)
    return Receipt("replayed" if decision.before else "recorded", delta)


def counted(asked: Delta, decision: Decision) -> Delta:
    """What counts of a change of which a part may count; the change itself, where its token stands
    for something else.
    """
    part = decision.outcome
    if part is None or not (0 < part <= asked.change or asked.change <= part < 0):
        return asked
    return replace(asked, change=part)


def check_granted(delta: Delta, decision: Decision) -> None:
    """Raises HoldEnded, LimitReached and TokenConflict where the hold's token stands for
    something else.
    """
    if decision.held not in (None, delta.change):
        _conflict(delta, f"a hold of {decision.held}")
    if decision.outcome == REFUSED:
        raise refused(delta, decision)
    if decision.outcome is not None:
        raise ended(delta, decision.outcome)


def ended(held: Delta, outcome: int | None) -> HoldEnded:
    state, actual = STATES.get(outcome, "captured"), change_of(outcome or 0)
    what = (
        f"captured: {actual} of {held.change} counts"
        if state == "captured"
        else f"{state}: nothing of it counts"
    )
    why = f"{held.lane.counter}: the hold {held.token} was {what}. Nothing was written."
    return HoldEnded(f"{why} A new hold needs a new idempotency key.", state, actual)


def refused(delta: Delta, decision: Decision) -> LimitReached:
    left = decision.left
    has, at_once, now, then = left.limit is not None, "", "", ""
    if decision.before:
        then = "this key was refused before. The reason then: "
    if has and decision.before:
        now = (
            f" The limit is {left.limit} now, and all Regions together have {left.available} left."
        )
    elif has:
        at_once = f" of {left.limit}; all Regions together had {left.available} left"
        at_once += " up to a second ago" if left.remembered else ""
    return LimitReached(
        f"{delta.lane.counter}: {then}{delta.change} would pass the limit{at_once}. Nothing "
        "counts, and that is final: the same key stays refused. A new attempt needs a new "
        f"idempotency key.{now}",
        counter=delta.lane.counter,
        **left._asdict(),
        replayed=decision.before,
    )


def _conflict(delta: Delta, what: str, counts: int | None = None) -> NoReturn:
    error = TokenConflict(
        f"{delta.lane.counter}: this key (its token is {delta.token}) already stands for {what}, "
        f"not for {delta.change}. Nothing was written; what it stands for stays. A new change "
        "needs a new idempotency key."
    )
    error.counts = counts
    raise error
