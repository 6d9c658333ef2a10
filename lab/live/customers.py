"""What customers ask for on the live page: new changes, and the same ones again, with the truth about them.

Rule 1: The truth is summed here, each change once, with no code of a counter.
Rule 2: A change that comes again is the same delta, perhaps through the other Region, and perhaps long after it was
cleaned.
Rule 3: All from the choices.
"""

import heapq
from collections.abc import Sequence

from lab.live.controls import Controls
from ledger import tokens
from ledger.settings import Settings
from ledger.values import Delta
from simulator.choices import Choices

COUNTER = "tickets"
CHANGES = (1, 1, 1, 2, 2, 3, 4, -1)
LATE_PER_MILLE, LATE_MS = 40, 4_000
"""Changes that were in a slow queue: beyond the allowed lateness, so they come as strays."""
SOON_MS, LATER_MS = (200, 1_500), (8_000, 15_000)  # when a change is delivered again: at once, or after it was cleaned


class Customers:
    """`value` and `count` are the truth: every change that was asked for, once."""

    def __init__(self, settings: Settings, choices: Choices) -> None:
        self.value = self.count = self.redelivered = 0
        self._settings = settings
        self._choices = choices
        self._again: list[tuple[int, int, Delta, str]] = []

    @property
    def waiting(self) -> bool:
        """Whether a change is still to be delivered again."""
        return bool(self._again)

    def deliveries(self, now_ms: int, step_ms: int, controls: Controls) -> list[tuple[Delta, str]]:
        """What is delivered in this step, each through a Region."""
        found = [self._new(now_ms, controls)] if self._choices.chance(controls.writes_per_s * step_ms) else []
        while self._again and self._again[0][0] <= now_ms:
            _, _, delta, region = heapq.heappop(self._again)
            self.redelivered += 1
            found.append((delta, region))
        return found

    def _new(self, now_ms: int, controls: Controls) -> tuple[Delta, str]:
        choices = self._choices
        asked_ms = now_ms - (LATE_MS if choices.chance(LATE_PER_MILLE) else 0)
        self.count += 1
        token = tokens.keyed(COUNTER, str(self.count), asked_ms)
        home = self._one_of(self._settings.regions)
        change = CHANGES[choices.pick(len(CHANGES))]
        delta = Delta(self._settings.lane_for(COUNTER, token, home), token, change)
        self.value += change
        if choices.chance(controls.duplicates_percent * 10):
            least, most = (SOON_MS, LATER_MS)[choices.pick(2)]
            again_ms = now_ms + least + choices.pick(most - least)
            heapq.heappush(self._again, (again_ms, self.count, delta, self._one_of(self._settings.regions)))
        return delta, home

    def _one_of(self, regions: Sequence[str]) -> str:
        return regions[self._choices.pick(len(regions))]
