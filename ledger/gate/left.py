"""`Left`: how much is left of a limit, beside a refusal."""

from datetime import UTC, datetime
from typing import NamedTuple, Self

from ledger.core.checks import to_ms
from ledger.core.period_name import parted
from ledger.core.requests import Instant
from ledger.core.values import Lane


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


def resets_at(lane: Lane, now: Instant) -> datetime | None:
    """When the period after a lane's begins, by UTC. None for a counter without periods, and where
    that has passed: a name has no zone, and in one west of UTC its period goes on for some
    hours."""
    span = parted(lane.counter)[1] if lane.retires_s else None
    return None if span is None else Left(resets_at=span.end.replace(tzinfo=UTC)).at(now).resets_at
