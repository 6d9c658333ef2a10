"""An item's states in one Region.

Rule 1: A write ends the newest state at a step and takes its place; who writes compares the stamps.
Rule 2: A read that lags may see any state that ended lately, of the last PAST_MAX.
"""

from dataclasses import dataclass, field

from ledger.core.requests import Item

Stamp = tuple[int, int]
"""The order of an item's writes: the Region's clock, then a running number.

The largest wins everywhere.
"""

PAST_MAX = 6


@dataclass(slots=True)
class Cell:
    """The newest state (None: deleted), and earlier ones, the oldest first, each with the step
    at which it ended.
    """

    item: Item | None
    stamp: Stamp
    past: list[tuple[int, Item | None]] = field(default_factory=list)

    def write(self, item: Item | None, stamp: Stamp, step: int) -> None:
        self.past = [*self.past[1 - PAST_MAX :], (step, self.item)]
        self.item, self.stamp = item, stamp

    def ended_after(self, step: int) -> list[Item | None]:
        """The earlier states that ended after a step, the latest first."""
        return [item for ended, item in reversed(self.past) if ended > step]
