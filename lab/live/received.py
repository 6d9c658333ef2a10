"""What a Region has received: the changes that were made there, and those that the link brought.

Rule 1: A Region has received a change once it held its delta, or a checkpoint that counts it.
Rule 2: The segments of a checkpoint's home, up to its version, say which changes it counts. The
customers' list says how much each adds. It uses no number that a counter computed.
"""

from collections.abc import Sequence

from lab.live.customers import Customers
from ledger.core import items, tokens
from ledger.core.values import Lane
from simulator.world import World


class Received:
    """Of the changes of one counter, by number."""

    def __init__(self, world: World, lanes: Sequence[Lane], customers: Customers) -> None:
        self._world, self._lanes, self._customers = world, lanes, customers
        self._numbers: dict[str, set[int]] = {region: set() for region in world.regions}
        self._sums = dict.fromkeys(world.regions, 0)
        self._versions: dict[tuple[str, Lane], int] = {}

    def numbers(self, region: str) -> set[int]:
        """The numbers of the changes that this Region has received. Not to be changed."""
        received = self._numbers[region]
        for lane in self._lanes:
            fresh = (self._in_deltas(region, lane) | self._in_checkpoint(region, lane)) - received
            self._sums[region] += sum(self._customers.changes[number] for number in fresh)
            received |= fresh
        return received

    def value(self, region: str) -> int:
        """The sum of the changes that this Region has received."""
        self.numbers(region)
        return self._sums[region]

    def _in_deltas(self, region: str, lane: Lane) -> set[int]:
        cells = self._world.replicas[region].cells.get(items.delta_pk(lane), {})
        numbers = self._customers.numbers
        return {numbers[sk] for sk, cell in cells.items() if cell.item and sk in numbers}

    def _in_checkpoint(self, region: str, lane: Lane) -> set[int]:
        """The changes that commits since the last look counted, if their segments have landed at
        home.
        """
        version = (
            items.version_of(self._world.replicas[region].item(items.checkpoint_key(lane))) or 0
        )
        seen = self._versions.get((region, lane), 0)
        found = set[int]()
        if version == seen:
            return found
        for sk, cell in (
            self._world.replicas[lane.region].cells.get(items.fold_pk(lane), {}).items()
        ):
            if (
                cell.item
                and items.SEGMENTS_FROM < sk < items.SEGMENTS_UPTO
                and seen < (of := int(sk[-10:])) <= version
            ):
                self._versions[region, lane] = max(of, self._versions.get((region, lane), 0))
                entries = items.segment_of(lane, cell.item)
                found |= {self._customers.numbers[tokens.from_bytes(token)] for token, _ in entries}
        return found
