"""`SoldOut`: what a process remembers for a second: counters of which too little was left, Regions that do not answer.

Rule 1: it spares asking every lane again for what none had a moment ago, so a refusal may be of a moment up to a second
before its call.
Rule 2: what comes back through this process is known at once: a change, the end of a hold, another limit. Nothing else
is forgotten earlier.
Rule 3: a Region that did not answer is asked for no lane until the second is over; nothing is decided meanwhile.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from ledger.errors import LedgerError
from ledger.limit import DOWN, UP
from ledger.requests import Instant

REMEMBERED_MS = 1_000
COUNTERS_MAX = 10_000


class Left(NamedTuple):
    """The floor or the ceiling, as it is set, and what all lanes together had left towards it; None: not seen."""

    limit: int | None = None
    available: int | None = None


@dataclass(slots=True)
class SoldOut:
    """By counter and side: since when, and how much was too much. Of several threads, whoever comes last is right.

    A clock that steps back, or ahead, only makes it forget.
    """

    _known: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    _left: dict[tuple[str, str], Left] = field(default_factory=dict)
    _silent: dict[str, tuple[int, str]] = field(default_factory=dict)

    def note(self, counter: str, side: str, need: int, began: Instant) -> None:
        """At a moment since `began` all lanes together had less than `need`."""
        if len(self._known) >= COUNTERS_MAX:
            self._known.clear()
        self._known[counter, side] = (began.wall_ms, need)

    def knows(self, counter: str, side: str, need: int, now: Instant) -> bool:
        """Whether there was too little a moment ago."""
        if (known := self._known.get((counter, side))) is None:
            return False
        since_ms, short = known
        return need >= short and _is_recent(since_ms, now)

    def note_silent(self, region: str, error: LedgerError, now: Instant) -> None:
        """A Region did not answer."""
        self._silent[region] = (now.wall_ms, f"a moment ago its Region did not answer: {error}")

    def silent(self, now: Instant) -> dict[str, str]:
        """The Regions that did not answer a moment ago, each with what it is known by.

        None of this very millisecond: a clock that stands still, as in tests, would remember it for ever.
        """
        known = self._silent.copy().items()
        return {region: why for region, (at_ms, why) in known if at_ms != now.wall_ms and _is_recent(at_ms, now)}

    def note_left(self, counter: str, side: str, left: Left) -> None:
        """All lanes were asked, and had too little. A refusal carries it, and nothing is decided by it."""
        if len(self._left) >= COUNTERS_MAX:
            self._left.clear()
        self._left[counter, side] = left

    def left(self, counter: str, side: str) -> Left:
        """What `note_left` kept last."""
        return self._left.get((counter, side), Left())

    def changed(self, counter: str, change: int) -> None:
        """A change counts: what it took of one side came to the other."""
        if change < 0:
            self.forget(counter, UP)
        if change > 0:
            self.forget(counter, DOWN)

    def forget(self, counter: str, *sides: str) -> None:
        """Some of it came back."""
        for side in sides:
            self._known.pop((counter, side), None)


def _is_recent(since_ms: int, now: Instant) -> bool:
    return 0 <= now.wall_ms - since_ms <= REMEMBERED_MS
