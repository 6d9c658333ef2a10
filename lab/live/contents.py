"""Which changes an item's number is made of, in each Region: why a naive counter is wrong.

Rule 1: It follows what is written and what arrives, the last writer winning, and never looks into a number.
Rule 2: Its sums must give the number that was read; where they do not, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ledger.requests import Key
from simulator.world import Stamp, World


@dataclass(frozen=True, slots=True)
class Content:
    """Changes by number. again: those that were counted once more, as often as they were."""

    once: frozenset[int] = frozenset()
    again: tuple[int, ...] = ()

    def plus(self, numbers: Iterable[int]) -> Content:
        added = frozenset(numbers)
        return Content(self.once | added, (*self.again, *sorted(self.once & added)))


class Contents:
    """Of one item. Tell it what is `decided` before it can be seen, and `look` after whatever may have changed it."""

    def __init__(self, world: World, key: Key) -> None:
        self._world, self.key = world, key
        self._now = dict.fromkeys(world.regions, Content())
        self._decided: dict[str, Content] = {}
        self._written: dict[Stamp, Content] = {}

    def decided(self, region: str, numbers: Iterable[int]) -> None:
        """A Region's next write of the item adds these changes to what it holds now."""
        self._decided[region] = self._now[region].plus(numbers)

    def look(self, region: str) -> None:
        """Take notice of a write, or of an arrival, in a Region."""
        cell = self._world.replicas[region].cell(self.key)
        if cell is None:
            return
        if cell.stamp not in self._written:
            self._written[cell.stamp] = self._decided.pop(region)
            self._forget()
        self._now[region] = self._written[cell.stamp]

    def here(self, region: str) -> Content:
        """What the item of a Region is made of."""
        return self._now[region]

    def elsewhere(self, region: str) -> frozenset[int]:
        """The changes that are in the other Region's item, or on their way from it: they may come yet."""
        found = frozenset[int]().union(*(each.once for other, each in self._now.items() if other != region))
        coming = self._world.replicas[region].inbox.get(self.key)
        return found | self._written[coming[1]].once if coming else found

    def _forget(self) -> None:
        """Keep what a Region holds or is about to get."""
        replicas = self._world.replicas.values()
        alive = {cell.stamp for replica in replicas if (cell := replica.cell(self.key))}
        alive |= {coming[1] for replica in replicas if (coming := replica.inbox.get(self.key))}
        self._written = {stamp: content for stamp, content in self._written.items() if stamp in alive}
