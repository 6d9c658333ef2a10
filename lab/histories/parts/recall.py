"""`Memory`: what a process of a history remembers of counters that are sold out, and when that was
true.

Rule 1: what it answers is what the shipped SoldOut answers.
Rule 2: a refusal for which nobody was asked may stand for a moment since what it remembers began:
as long ago as clocks that are as wrong as the history's can take for REMEMBERED_MS, and not before
something came back through its process.
"""

from dataclasses import dataclass, field

from ledger.core.limit import DOWN, UP
from ledger.core.requests import Instant
from ledger.gate.left import Left
from ledger.gate.sold_out import REMEMBERED_MS, SoldOut
from simulator.world import World

Moment = tuple[int, int]


@dataclass(kw_only=True)
class Memory(SoldOut):
    """Of one process, until it crashes. skew_ms: how wrong its wall clock may be."""

    world: World
    skew_ms: int
    _asked: Moment = (0, 0)
    """When it last knew nothing, so that the lanes were asked."""
    _began: dict[str, Moment] = field(default_factory=dict)
    """By side: since when what it knows is true."""
    _said: dict[tuple[str, int], int] = field(default_factory=dict)
    """By side and need: what it said in this call, as the step since which that is true."""

    def note(self, counter: str, side: str, need: int, began: Instant, left: Left) -> None:
        super().note(counter, side, need, began, left)
        self._began[side] = self._asked

    def knows(self, counter: str, side: str, need: int, now: Instant) -> Left | None:
        known = super().knows(counter, side, need, now)
        if not known:
            self._asked = self.world.step, self.world.now_ms
        elif side in self._began:
            step, began_ms = self._began[side]
            if self.world.now_ms - began_ms <= REMEMBERED_MS + 2 * self.skew_ms:
                self._said[side, need] = step
        return known

    def call(self) -> int:
        self._said.clear()
        return self.world.step

    def since(self, amount: int, began: int) -> int:
        """From which step on a refusal may be, of a call that began at that step."""
        return min(began, self._said.get((DOWN if amount < 0 else UP, abs(amount)), began))

    def came_back(self, *sides: str) -> None:
        """This process was told so: what is remembered of those sides is no excuse any more."""
        for side in sides:
            self._began.pop(side, None)
