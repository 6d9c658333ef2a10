"""The cable between the two Regions of a scene: every item that one has written and the other does not hold yet.

Rule 1: An item takes its own share of the lag, so items overtake each other; a slider that moves is felt at once.
Rule 2: While it is cut nothing moves, and what was under way sets out again when it is healed.
Rule 3: It knows keys, not what is in the items.
"""

from ledger.requests import Key
from simulator.choices import Choices
from simulator.world import World


class Cable:
    """`carry` once a step."""

    def __init__(self, world: World, choices: Choices) -> None:
        self._world, self._choices = world, choices
        self._ways: dict[tuple[str, Key], tuple[int, int]] = {}  # since when, and its share of the lag in per cent
        self._cut = False

    def carry(self, now_ms: int, lag_ms: int, *, cut: bool) -> None:
        """Deliver what has had its time."""
        for region, replica in self._world.replicas.items():
            for key in replica.inbox:
                if (region, key) not in self._ways:
                    self._ways[region, key] = now_ms, self._choices.pick(200)
        if self._cut and not cut:
            self._ways = {where: (now_ms, share) for where, (_, share) in self._ways.items()}
        self._cut = cut
        for (region, key), (since_ms, share) in [] if cut else [*self._ways.items()]:
            if now_ms - since_ms >= share * lag_ms / 100:
                del self._ways[region, key]
                self._world.deliver(region, key)
