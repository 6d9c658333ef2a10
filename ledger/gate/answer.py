"""What a token stands for in a gate, and what its caller gets: a receipt, nothing for a hold, or an
error.

Rule 1: a call for something else under a token that is taken gets a TokenConflict, or the way in
which the hold ended.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, NoReturn, Self

from ledger.core.checks import to_ms
from ledger.core.errors import HoldEnded, LimitReached, TokenConflict
from ledger.core.period_name import parted
from ledger.core.requests import Instant
from ledger.core.values import Delta, Lane, Receipt
from ledger.gate.gate import REFUSED, STATES, change_of


class Left(NamedTuple):
    """The floor or the ceiling, as it is set, and how much all lanes together had left towards it;
    None: not seen.

    remembered: by an earlier call of this process. resets_at: when the next period begins.
    """

    limit: int | None = None
    available: int | None = None
    remembered: bool = False
    resets_at: datetime | None = None

    def at(self, now: Instant) -> Self:
        """The same at a later moment: without a `resets_at` that has passed."""
        is_over = self.resets_at is not None and to_ms(self.resets_at) <= now.wall_ms
        return self._replace(resets_at=None) if is_over else self


@dataclass(frozen=True, slots=True)
class Decision:
    """What a token stands for: its outcome, or an open hold of this amount. before: it was decided
    before this call.
    left: of a refusal, how much was left."""

    outcome: int | None = None
    held: int | None = None
    before: bool = True
    left: Left = field(default=Left(), compare=False)


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


def resets_at(lane: Lane, now: Instant) -> datetime | None:
    """When the period after a lane's begins, by UTC. None for a counter without periods, and where
    that has passed: a name has no zone, and in one west of UTC its period goes on for some
    hours."""
    span = parted(lane.counter)[1] if lane.retires_s else None
    return None if span is None else Left(resets_at=span.end.replace(tzinfo=UTC)).at(now).resets_at


def refused(delta: Delta, decision: Decision) -> LimitReached:
    left = decision.left
    has, at_once, now = left.limit is not None, "", ""
    if has and decision.before:
        now = (
            f" The limit is {left.limit} now, and all Regions together have {left.available} left."
        )
    elif has:
        at_once = f" of {left.limit}; all Regions together had {left.available} left"
        at_once += " up to a second ago" if left.remembered else ""
    return LimitReached(
        f"{delta.lane.counter}: {delta.change} would pass the limit{at_once}. Nothing counts, and "
        f"that is final for this token: a new attempt needs a new idempotency key.{now}",
        counter=delta.lane.counter,
        **left._asdict(),
        replayed=decision.before,
    )


def _conflict(delta: Delta, what: str, counts: int | None = None) -> NoReturn:
    error = TokenConflict(
        f"{delta.lane.counter}: the token {delta.token} already stands for {what}, not for "
        f"{delta.change}. Nothing was written; the first use stays. A new change needs a new "
        "idempotency key."
    )
    error.counts = counts
    raise error
