"""What customers ask for on the live page: new changes, and the same ones again, with the truth about them.

Rule 1: The truth is a list of changes, each once, and it is summed with no code of a counter.
Rule 2: A change that comes again is the same delta, perhaps through the other Region, and perhaps long after it was
cleaned: its answer was lost.
Rule 3: All from the choices.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lab.live.controls import Controls
from ledger import tokens
from ledger.settings import Settings
from ledger.values import Delta
from simulator.choices import Choices

SOON_MS, LATER_MS = (200, 1_500), (7_000, 10_000)  # when a change is delivered again: at once, or after it was cleaned


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked for: changes of a counter. Of a thousand, `late_per_mille` were `late_ms` in a slow queue."""

    counter: str
    changes: tuple[int, ...]
    late_per_mille: int = 0
    late_ms: int = 4_000


class Customers:
    """`value` and `count` are the truth: every change that was asked for, once. They are numbered from 0 on."""

    def __init__(self, settings: Settings, choices: Choices, demand: Demand) -> None:
        self.value = self.redelivered = 0
        self.changes: list[int] = []
        self.numbers: dict[str, int] = {}
        """By token, the number of a change."""
        self._settings = settings
        self._choices = choices
        self._demand = demand
        self._again: list[tuple[int, int, Delta, str]] = []

    @property
    def count(self) -> int:
        return len(self.changes)

    @property
    def waiting(self) -> int:
        """How many changes are still to be delivered again."""
        return len(self._again)

    def sum(self, numbers: Iterable[int]) -> int:
        """What some of the changes come to."""
        return sum(self.changes[number] for number in numbers)

    def deliveries(self, now_ms: int, step_ms: int, controls: Controls) -> list[tuple[Delta, str]]:
        """What is delivered in this step, each through a Region."""
        found = [self._new(now_ms, controls)] if self._choices.chance(controls.writes_per_s * step_ms) else []
        while self._again and self._again[0][0] <= now_ms:
            _, _, delta, region = heapq.heappop(self._again)
            self.redelivered += 1
            found.append((delta, region))
        return found

    def _new(self, now_ms: int, controls: Controls) -> tuple[Delta, str]:
        choices, demand = self._choices, self._demand
        asked_ms = now_ms - (demand.late_ms if choices.chance(demand.late_per_mille) else 0)
        token = tokens.keyed(demand.counter, str(self.count), asked_ms)
        home = self._one_of(self._settings.regions)
        change = demand.changes[choices.pick(len(demand.changes))]
        delta = Delta(self._settings.lane_for(demand.counter, token, home), token, change)
        self.numbers[token] = self.count
        self.changes.append(change)
        self.value += change
        if choices.chance(controls.duplicates_percent * 10):
            least, most = (SOON_MS, LATER_MS)[choices.pick(2)]
            again_ms = now_ms + least + choices.pick(most - least)
            heapq.heappush(self._again, (again_ms, self.count, delta, self._one_of(self._settings.regions)))
        return delta, home

    def _one_of(self, regions: Sequence[str]) -> str:
        return regions[self._choices.pick(len(regions))]
