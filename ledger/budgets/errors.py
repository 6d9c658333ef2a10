"""The errors of budgets: a refused reservation, and settlements that no repetition mends."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ledger.core.errors import HoldEnded, LimitReached, PeriodOver, TokenConflict


class OverBudget(LimitReached):
    """A budget has too little left for an estimate: `counter` names the budget, `available` says
    how much it has left, and `resets_at` when its next period begins. No budget holds anything of
    the call; if a release failed, a note says so, and that hold ends with its time. To try again
    make a new call.
    """

    def __init__(
        self,
        counter: str,
        estimate: int,
        *,
        available: int | None = None,
        resets_at: datetime | None = None,
        replayed: bool = False,
    ) -> None:
        left = f"less than {estimate:,}" if available is None else f"{available:,}"
        cost = f"this call may cost {estimate:,}"
        why, do = f"has {left} left, and {cost}", "Send a cheaper call"
        waits = "" if resets_at is None else f", or wait until {_day(resets_at)}"
        if replayed:
            why, do = "refused this call before", "Take a new name"
            if available is not None:
                why += f". It has {left} left now, and {cost}"
                if available < estimate:
                    do = "Send a cheaper call, under a new name"
                else:
                    waits = ""
        super().__init__(
            f"The budget {counter} {why}. Nothing of this call counts. {do}{waits}.",
            counter=counter,
            available=available,
            resets_at=resets_at,
            replayed=replayed,
        )
        self.estimate = estimate

    @classmethod
    def of(cls, refused: LimitReached, estimate: int) -> OverBudget:
        """The error of a budget whose limit refused an estimate, with the refusal's notes."""
        known: dict[str, Any] = {
            name: getattr(refused, name) for name in ("available", "resets_at", "replayed")
        }
        error = cls(str(refused.counter), estimate, **known)
        error.__dict__.update(refused.__dict__)
        return error


def _day(at: datetime) -> str:
    """The day of a time that is a day's first, or the time, in UTC."""
    text = f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"
    return text.removesuffix(" 00:00") if text.endswith(" 00:00") else f"{text} UTC"


class SettledOtherwise(HoldEnded, TokenConflict):
    """A call was settled before, with another cost, which stays. Nothing of the new cost was
    written to `counter`. There `actual` of the first cost counts; if `is_least`, more of it may
    count, above what was held. `state` is `captured`. If the new cost is right, `add` the
    difference with another idempotency key.
    """

    def __init__(self, counter: str, cost: int, actual: int, *, is_least: bool) -> None:
        first = f"{actual:,}{' or more' if is_least else ''} of the first cost counts"
        super().__init__(
            f"{counter}: the call was settled before, with another cost than {cost:,}. {first}, "
            "and that stays. Nothing of the new cost was written. If the new cost is right, `add` "
            "the difference with another idempotency key.",
            "captured",
            actual,
        )
        self.counter, self.is_least = counter, is_least


class NotCounted(PeriodOver):
    """The period of `counter` was over when a call was settled, so a part of its cost is in no
    counter. `over` says how much of the cost each budget refused, as `Call.over` does."""

    def __init__(self, counter: str, used: int, cost: int, since: datetime | None) -> None:
        super().__init__(
            f"{counter}: its period is over. Of the cost of {cost:,}, {used:,} counts in it; the "
            f"rest, {cost - used:,}, is in no counter, unless an earlier settlement counted it. "
            "`add` the rest to a counter whose period is still open.",
            counter=counter,
            since=since,
        )
        self.over: dict[str, int] = {counter: cost - used}


FINAL = (SettledOtherwise, NotCounted)
"""Errors of one budget that no repetition mends."""
