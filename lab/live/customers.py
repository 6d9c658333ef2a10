"""What customers send on the live page: new changes, and some of them again, with the truth about
them.

Rule 1: The truth is a list of changes, each once. No code of a counter sums it.
Rule 2: A change whose answer was lost comes again, perhaps through the other Region, and perhaps
long after it was cleaned. Of a thousand changes, LATE_PER_MILLE come LATE_MS late, as from a slow
queue.
Rule 3: The choices decide everything.
"""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from lab.live.controls import Controls
from ledger.core import tokens
from simulator.choices import Choices

COUNTER, CHANGES = "tickets", (1, 1, 1, 2, 2, 3, 4, -1)
LATE_PER_MILLE, LATE_MS = 40, 4_000
# when a change is delivered again: at once, or after it was cleaned
AGAIN_MS = (200, 1_500), (7_000, 10_000)
SOONER = 5  # at rest, so many times sooner


class Change(NamedTuple):
    number: int
    amount: int
    home: str
    made_ms: int


class Customers:
    """`value` and `count` are the truth: every change that a customer sent, once.

    Numbers begin at 0.
    """

    def __init__(self, regions: Sequence[str], choices: Choices) -> None:
        self.value = self.redelivered = 0
        self.changes: list[int] = []
        self.numbers: dict[str, int] = {}
        """By token, the number of a change."""
        self._regions, self._choices = regions, choices
        self._again: list[tuple[int, Change, str]] = []

    @property
    def count(self) -> int:
        return len(self.changes)

    @property
    def waiting(self) -> int:
        """How many changes are still to be delivered again."""
        return len(self._again)

    def hurry(self, now_ms: int) -> None:
        """Let what waits come again sooner."""
        self._again = sorted(
            (now_ms + (due_ms - now_ms) // SOONER, change, region)
            for due_ms, change, region in self._again
        )

    def last_due_ms(self, now_ms: int) -> int:
        """In how many ms the last change comes again that waits now."""
        return max((due_ms - now_ms for due_ms, _, _ in self._again), default=0)

    def deliveries(self, now_ms: int, step_ms: int, controls: Controls) -> list[tuple[Change, str]]:
        """What is delivered in this step, each through a Region."""
        found = (
            [self._new(now_ms, controls)]
            if self._choices.chance(controls.writes_per_s * step_ms)
            else []
        )
        while self._again and self._again[0][0] <= now_ms:
            self.redelivered += 1
            found.append(heapq.heappop(self._again)[1:])
        return found

    def _new(self, now_ms: int, controls: Controls) -> tuple[Change, str]:
        choices = self._choices
        made_ms = now_ms - (LATE_MS if choices.chance(LATE_PER_MILLE) else 0)
        change = Change(self.count, CHANGES[choices.pick(len(CHANGES))], self._region(), made_ms)
        self.numbers[tokens.keyed(COUNTER, str(change.number), made_ms)] = change.number
        self.changes.append(change.amount)
        self.value += change.amount
        if choices.chance(controls.duplicates_percent * 10):
            least, most = AGAIN_MS[choices.pick(2)]
            heapq.heappush(
                self._again, (now_ms + least + choices.pick(most - least), change, self._region())
            )
        return change, change.home

    def _region(self) -> str:
        return self._regions[self._choices.pick(len(self._regions))]
