"""`SoldOut`: what a process remembers for a second of counters of which too little was left.

Rule 1: it spares asking every lane again for what none had a moment ago, so a refusal may be of a moment up to a second
before its call.
Rule 2: what comes back through this process is known at once. Nothing else is forgotten earlier.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

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
        return need >= short and 0 <= now.wall_ms - since_ms <= REMEMBERED_MS

    def saw(self, counter: str, side: str, left: Left) -> None:
        """All lanes were asked, and had too little. A refusal carries it, and nothing is decided by it."""
        if len(self._left) >= COUNTERS_MAX:
            self._left.clear()
        self._left[counter, side] = left

    def left(self, counter: str, side: str) -> Left:
        """What was seen last."""
        return self._left.get((counter, side), Left())

    def changed(self, counter: str, change: int) -> None:
        """A change counts: what it took of one side came to the other."""
        if change < 0:
            self.forget(counter, UP)
        if change > 0:
            self.forget(counter, DOWN)

    def forget(self, counter: str, side: str) -> None:
        """Some of it came back."""
        self._known.pop((counter, side), None)
