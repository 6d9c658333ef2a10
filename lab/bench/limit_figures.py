"""The figures of limited counters: what a change, a refusal, a retry, a hold and a read cost, each with its goal.

Rule 1: units are by AWS's published rules from the requests that the shipped code sends to a table in memory.
Rule 2: the clock is ours and keys name the tokens, so nothing waits and every run prints the same.
Rule 3: each figure is of a gate that has been at work for a while.
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

from lab.bench.figure import Figure
from lab.meters.charge import Charge
from lab.meters.metered_table import TABLE, MeteredTable
from ledger import Change, Ledger, Settings
from ledger.checks import to_datetime
from ledger.gate import decide
from ledger.gate.gate import REFUSED
from ledger.gate.gates import Gates
from ledger.gate.hold import Hold
from ledger.gate.items import gate_key
from ledger.limit import Limit
from ledger.requests import Instant, Put, Written, run
from ledger.table import ByRegion
from ledger.values import Lane
from reader import Reader

REGION, OTHER = "eu-west-1", "us-east-1"
START_MS = 1_800_000_000_000
COUNTER = "seats:gala"
WARM, WARM_GROUPS = 200, 20
"""Changes, holds or groups before what is measured."""


class Sale:
    """A limited counter, its ledger and reader in one Region or more, and a clock that `tick` moves on."""

    def __init__(self, ceiling: int = 10**9, regions: Sequence[str] = (REGION,)) -> None:
        self.now_ms = float(START_MS)
        self.tables = {region: MeteredTable() for region in regions}
        limits = {"seats:": Limit(ceiling=ceiling, region=REGION)}
        self.settings = Settings(table=TABLE, region=REGION, regions=tuple(regions), limits=limits)
        self.ledger = Ledger(self.settings, tables=self.tables, clock=self._clock)
        self.reader = Reader(self.settings, table=self.tables[REGION], clock=self._clock)
        self.reader.read("another")  # asks for the table's shape, once a process
        self._random, self._number = random.Random(1), 0

    def _clock(self) -> int:
        return int(self.now_ms)

    def tick(self, ms: float) -> None:
        """Time goes by, and copies of the gates arrive in the other Regions."""
        self.now_ms += ms
        for home, table in self.tables.items():
            item = table.table.items.get(gate_key(Lane(home, 0, COUNTER)))
            for region, other in self.tables.items():
                if item is not None and region != home:
                    other.table.answer(Put(item))

    def change(self, late_ms: int = 0) -> Change:
        """A change of 1 that was asked for up to `late_ms` ago."""
        self._number += 1
        return Change(COUNTER, 1, str(self._number), self._at(late_ms))

    def hold(self, length: timedelta) -> Hold:
        self._number += 1
        return self.ledger.hold(COUNTER, 1, expires=length, idempotency_key=str(self._number), at=self._at())

    def _at(self, late_ms: int = 0) -> datetime:
        return to_datetime(self._clock() - self._random.randint(0, late_ms))

    def charge(self, is_charged: bool = True) -> None:
        """From now on."""
        for table in self.tables.values():
            table.is_charged = is_charged

    @property
    def cost(self) -> Charge:
        return sum((table.cost for table in self.tables.values()), start=Charge())


def add(sale: Sale, change: Change) -> None:
    sale.ledger.add(change.counter, change.change, idempotency_key=change.idempotency_key, at=change.at)


def singly(rate: int, late_ms: int = 0, changes: int = 400) -> float:
    """Write units of a change, of so many a second."""
    sale = Sale()
    for number in range(WARM + changes):
        sale.charge(number >= WARM)
        sale.tick(1_000 / rate)
        add(sale, sale.change(late_ms))
    return sale.cost.write_units / changes


def in_groups(rate: int, size: int, late_ms: int, groups: int = 60) -> float:
    """Write units of a change, of so many a second, `size` in a call."""
    sale = Sale()
    for number in range(WARM_GROUPS + groups):
        sale.charge(number >= WARM_GROUPS)
        sale.tick(1_000 * size / rate)
        for outcome in sale.ledger.add_many([sale.change(late_ms) for _ in range(size)]):
            if isinstance(outcome, Exception):
                raise outcome
    return sale.cost.write_units / groups / size


def one_trip(changes: int = 200) -> float:
    """Of changes that the rights here suffice for, 100 a second: the most requests until one was decided."""
    sale, most = Sale(), 0
    answers = sale.tables[REGION].answers
    for number in range(changes):
        sale.charge(number > 0)  # the first makes the gate
        sale.tick(10)
        answers.clear()
        add(sale, sale.change())
        if answers:
            most = max(most, 1 + [isinstance(each, Written) for each in answers].index(True))
    return most


def refused(changes: int = 100) -> float:
    """Write units of a change that two Regions refuse, ten a second; the steady clock is ours, too."""
    sale = Sale(ceiling=WARM, regions=(REGION, OTHER))
    for _ in range(WARM):
        sale.tick(100)
        add(sale, sale.change())
    sale.charge()
    gates, table = Gates.limited(sale.settings, COUNTER, "bench"), ByRegion(REGION, sale.tables)
    for _ in range(changes):
        sale.tick(100)
        change = sale.change()
        delta = sale.ledger.prepare(COUNTER, 1, idempotency_key=change.idempotency_key, at=change.at)
        now_ms = int(sale.now_ms)
        decision = run(decide.decide_change(gates, delta), table, partial(Instant, now_ms, now_ms))
        if decision.known.outcome != REFUSED:
            raise AssertionError("more was sold than there is")
    return sale.cost.write_units / changes


def again(changes: int = 50) -> float:
    """Write units of a change that is sent again at once."""
    sale = Sale()
    for _ in range(changes):
        sale.tick(100)
        change = sale.change()
        for is_second in (False, True):
            sale.charge(is_second)
            add(sale, change)
    return sale.cost.write_units / changes


def held(open_holds: int, every_ms: float, holds: int = 200) -> float:
    """Write units of a hold and its end together, with so many open; four of five captured, the fifth released."""
    sale, waiting = Sale(), list[Hold]()
    length = timedelta(milliseconds=3 * open_holds * every_ms)
    for number in range(open_holds + WARM + holds):
        sale.charge(number >= open_holds + WARM)
        sale.tick(every_ms)
        waiting.append(sale.hold(length))
        if len(waiting) > open_holds:
            ended = waiting.pop(0)
            if number % 5:
                ended.capture()
            else:
                ended.release()
    return sale.cost.write_units / holds


def read() -> float:
    """Read units of a strong read of one lane, which is one request."""
    sale = Sale()
    for _ in range(WARM):
        sale.tick(10)
        add(sale, sale.change())
    sale.charge()
    if sale.reader.read(COUNTER).value != WARM:
        raise AssertionError("the read is wrong")
    if sale.cost.requests != 1:
        raise AssertionError(f"the read took {sale.cost.requests} requests")
    return sale.cost.read_units


def figures() -> Iterator[Figure]:
    """All that need no engine."""
    for rate in (1, 10, 100):
        yield Figure(f"limited: write units an add, {rate} a second", singly(rate), 1.2)
    yield Figure("limited: write units an add, 100 a second, up to 2 s late", singly(100, 2_000), 1.7)
    yield Figure("limited: write units an add in groups of 30, 500 a second, 2 s late", in_groups(500, 30, 2_000), 0.4)
    yield Figure("limited: requests until a change is decided where there is enough", one_trip(), 1)
    yield Figure("limited: write units an add that is refused, two Regions", refused(), 1.5)
    yield Figure("limited: write units an add that is sent again", again(), 1)
    yield Figure("limited: write units a hold and its end, 2 open", held(2, 1_000), 2.4)
    yield Figure("limited: write units a hold and its end, 3,000 open", held(3_000, 1_000 / 30), 6)
    yield Figure("limited: read units of a lane", read(), 1)


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m lab.bench.limit_figures", description=__doc__).parse_args()
    for figure in figures():
        print(figure)
