"""What a flash sale asks of other Regions, when many buyers want a seat at once.

Rule 1: the shipped program decides; each request takes effect in the middle of its round trip, so that buyers overtake
each other. Nothing fails: `make demo` is for that.
Rule 2: the clock is ours and all is drawn from a seed, so every run prints the same.
"""

import argparse
import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random
from typing import Any

from lab.bench.figure import Figure
from ledger import Ledger, Settings
from ledger.checks import to_datetime
from ledger.gate.decide import Decision, decide_change
from ledger.gate.gate import REFUSED
from ledger.gate.gates import Gates
from ledger.gate.items import gate_key
from ledger.limit import Limit
from ledger.memory import MemoryTable
from ledger.requests import At, Instant, Item, Now, Pause, Program, Put, Request
from ledger.values import Lane

REGIONS = ("eu-west-1", "us-east-1", "ap-south-1")
SHARES = {2: (70, 30), 3: (55, 30, 15)}
"""Of 100 buyers, so many are in each Region."""

COUNTER = "seats:gala"
SEATS, BUYERS, SALE_MS, START_MS = 10_000, 12_000, 60_000, 1_800_000_000_000
NEAR_MS, FAR_MS = (4, 8), (70, 130)
"""How long a round trip takes: to the table of the own Region, and to another's."""

COPIED_EVERY_MS, COPIES_LATE = 500, 2
"""Of each gate the other Regions see what it was one to one and a half seconds ago."""


@dataclass
class Sale:
    """In the first so many Regions, with a process in each."""

    regions: int
    drawn: Random = field(default_factory=lambda: Random(1))
    now_ms: int = START_MS
    across: int = 0
    sold: int = 0
    refused: int = 0
    until_sold_out: int = 0
    """Requests across Regions until the last seat was sold."""

    def __post_init__(self) -> None:
        self.homes = REGIONS[: self.regions]
        self.tables = {region: MemoryTable() for region in self.homes}
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._copies = deque[dict[str, Item | None]]()

    def play(self) -> None:
        limits = {"seats:": Limit(ceiling=SEATS, region=REGIONS[0])}
        of = {home: Settings(table="sale", region=home, regions=self.homes, limits=limits) for home in self.homes}
        clock = (START_MS + SALE_MS).__int__
        ledgers = {home: Ledger(of[home], table=self.tables[home], clock=clock) for home in self.homes}
        gates = {home: Gates.limited(settings, COUNTER, "bench") for home, settings in of.items()}
        for number in range(BUYERS):
            at_ms = START_MS + number * SALE_MS // BUYERS
            (home,) = self.drawn.choices(self.homes, SHARES[self.regions])
            delta = ledgers[home].prepare(COUNTER, 1, idempotency_key=str(number), at=to_datetime(at_ms))
            self._at(at_ms, partial(self._go, home, decide_change(gates[home], delta), None))
        self._at(START_MS, self._copy)
        while self.sold + self.refused < BUYERS:
            self.now_ms, _, happen = heapq.heappop(self._due)
            happen()

    def _at(self, ms: int, happen: Callable[[], None]) -> None:
        heapq.heappush(self._due, (ms, next(self._order), happen))

    def _go(self, home: str, buyer: Program[Decision], answer: Any) -> None:
        """The buyer has an answer, and asks for the next thing."""
        try:
            request = buyer.send(answer)
            while isinstance(request, Now):
                request = buyer.send(Instant(self.now_ms, self.now_ms))
        except StopIteration as over:
            self._decided(over.value)
            return
        if isinstance(request, Pause):
            self._at(self.now_ms + request.ms, partial(self._go, home, buyer, None))
            return
        there, request = (request.region, request.request) if isinstance(request, At) else (home, request)
        self.across += there != home
        half_ms = self.drawn.randint(*(NEAR_MS if there == home else FAR_MS)) // 2
        self._at(self.now_ms + half_ms, partial(self._carry_out, home, buyer, there, request, half_ms))

    def _carry_out(self, home: str, buyer: Program[Decision], there: str, request: Request, half_ms: int) -> None:
        answer = self.tables[there].answer(request)
        self._at(self.now_ms + half_ms, partial(self._go, home, buyer, answer))

    def _decided(self, decision: Decision) -> None:
        if decision.known.outcome == REFUSED:
            self.refused += 1
            return
        self.sold += 1
        if self.sold == SEATS:
            self.until_sold_out = self.across

    def _copy(self) -> None:
        gates = {home: gate_key(Lane(home, 0, COUNTER)) for home in self.homes}
        self._copies.append({home: self.tables[home].items.get(key) for home, key in gates.items()})
        if len(self._copies) > COPIES_LATE:
            for home, item in self._copies.popleft().items():
                for there in self.homes:
                    if item is not None and there != home:
                        self.tables[there].answer(Put(item))
        self._at(self.now_ms + COPIED_EVERY_MS, self._copy)


def figures() -> Iterator[Figure]:
    """Of sales in two Regions and in three."""
    for regions in SHARES:
        sale = Sale(regions)
        sale.play()
        if sale.sold != SEATS:
            raise AssertionError(f"{sale.sold:,} of {SEATS:,} seats were sold")
        across = sale.until_sold_out * 1_000 / SEATS
        yield Figure(f"limited: requests across {regions} Regions per 1,000 sold of a flash sale", across, 60)


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m lab.bench.sale_figures", description=__doc__).parse_args()
    for figure in figures():
        print(figure)
