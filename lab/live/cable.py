"""The cable between the two Regions of a scene: every item that one Region wrote and the other does
not hold yet.

Rule 1: An item takes its own share of the lag, so items overtake each other; a slider that moves is
felt at once.
Rule 2: While it is cut nothing moves. What was under way sets out again when it is healed.
Rule 3: It knows keys, not what is in the items.
"""

from dataclasses import dataclass, replace

from ledger.core.requests import Key
from simulator.choices import Choices
from simulator.world import World

SHOWN_MAX = 60  # items of one direction that are shown one by one


@dataclass(frozen=True, slots=True)
class Way:
    """An item's way: since when, and its share of the lag in per cent. number: its own."""

    number: int
    since_ms: int
    share: int


class Cable:
    """Call `carry` once a step; `ways` returns what is on it."""

    def __init__(self, world: World, choices: Choices) -> None:
        self._world, self._choices = world, choices
        self._ways: dict[tuple[str, Key], Way] = {}
        self._number = 0
        self._cut = False

    def carry(self, now_ms: int, lag_ms: int, *, cut: bool) -> None:
        """Deliver every item whose time has come."""
        for region, replica in self._world.replicas.items():
            for key in replica.inbox:
                if (region, key) not in self._ways:
                    self._number += 1
                    self._ways[region, key] = Way(self._number, now_ms, self._choices.pick(200))
        if self._cut and not cut:
            self._ways = {where: replace(way, since_ms=now_ms) for where, way in self._ways.items()}
        self._cut = cut
        if cut:
            return
        for (region, key), way in list(self._ways.items()):
            if now_ms - way.since_ms >= way.share * lag_ms / 100:
                del self._ways[region, key]
                self._world.deliver(region, key)

    def ways(self, region: str, now_ms: int, lag_ms: int) -> list[tuple[int, Key, float]]:
        """What is on its way to a Region, the first of it: its number, its key, and how far it
        is, from 0 to 1.
        """

        def far(way: Way) -> float:
            return (
                0
                if self._cut
                else min(1, (now_ms - way.since_ms) / max(1, way.share * lag_ms / 100))
            )

        found = [(way, key) for (to, key), way in self._ways.items() if to == region][:SHOWN_MAX]
        return [(way.number, key, round(far(way), 2)) for way, key in found]
