"""The figures of limited counters: what a change, a refusal, a retry, a hold, a read and a flash
sale cost.

Rule 1: Each figure is of a gate that has been at work for a while.
Rule 2: What depends on how many are open, or on how fast they come, is the worst of a range, and
says where.
"""

import statistics
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

from lab.measure.figure import Figure
from lab.measure.metered_table import (
    HOME,
    Charge,
    Shop,
    cost,
)
from ledger import Change
from ledger.client.holds import Hold
from ledger.core.checks import to_datetime
from ledger.core.errors import LimitReached
from ledger.core.limit import Limit
from ledger.core.requests import Instant, Put
from ledger.core.running import run
from ledger.core.values import Lane
from ledger.gate import decide
from ledger.gate.gate import REFUSED
from ledger.gate.gates import Gates
from ledger.gate.items import gate_key
from ledger.tables.dynamo import ByRegion

REGIONS = (HOME, "us-east-1", "ap-south-1")
COUNTER = "seats:gala"
WARM, WARM_GROUPS = 200, 20
"""Changes, holds or groups before what is measured."""

SHARES = {2: (70, 30), 3: (55, 30, 15)}
"""Of 100 buyers of the flash sale, so many are in each Region."""

SALE_MS, COPIES = 60_000, 100
"""Of the sale, and how often in it the gates of each Region arrive in the others."""


class Sale(Shop):
    """A limited counter in some Regions."""

    def __init__(self, ceiling: int = 10**9, regions: int = 1) -> None:
        super().__init__(*REGIONS[:regions], limits={"seats:": Limit(ceiling=ceiling, region=HOME)})
        self._random, self._number = Random(1), 0

    def copy(self) -> None:
        """The gates arrive in the other Regions."""
        for home, table in self.tables.items():
            item = table.table.items.get(gate_key(Lane(home, 0, COUNTER)))
            for there in self.homes:
                if item is not None and there != home:
                    self.tables[there].table.answer(Put(item))

    def named(self, late_ms: int = 0) -> dict[str, Any]:
        """The key and the time of a change, up to `late_ms` ago."""
        self._number += 1
        at = to_datetime(int(self.now_ms) - self._random.randint(0, late_ms))
        return {"idempotency_key": str(self._number), "at": at}

    def add(self, home: str = HOME, late_ms: int = 0) -> None:
        self.ledgers[home].add(COUNTER, 1, **self.named(late_ms))

    def rounds(
        self, warm: int, rounds: int, every_ms: float, act: Callable[[int], object]
    ) -> float:
        """Write units of a round, of so many, so far apart, after some that are not charged."""

        def play(numbers: Iterable[int]) -> None:
            for number in numbers:
                self.now_ms += every_ms
                act(number)

        play(range(warm))
        measured = self.charged(lambda: play(range(warm, warm + rounds)))
        return measured.write_units / max(1, rounds)


def singly(rate: int, late_ms: int = 0, changes: int = 400) -> tuple[float, float]:
    """(write units of a change, the median of its requests), of so many a second."""
    sale, requests = Sale(), list[int]()

    def add(_: int) -> None:
        requests.append(sale.charged(lambda: sale.add(late_ms=late_ms)).requests)

    return sale.rounds(WARM, changes, 1_000 / rate, add), statistics.median(requests[WARM:])


def in_groups(rate: int, size: int, late_ms: int, groups: int) -> float:
    """Write units of a change, of so many a second, `size` in a call."""
    sale = Sale()

    def add_many(_: int) -> None:
        sale.add_many([Change(COUNTER, 1, **sale.named(late_ms)) for _ in range(size)])

    return sale.rounds(WARM_GROUPS, groups, 1_000 * size / rate, add_many) / size


def refused(changes: int = 100) -> float:
    """Write units of a change that two Regions refuse, ten a second; the steady clock is ours,
    too.
    """
    sale = Sale(ceiling=WARM, regions=2)
    sale.rounds(WARM, 0, 100, lambda _: sale.add())
    sale.copy()
    gates, table = Gates.limited(sale.settings, COUNTER, "bench"), ByRegion(HOME, sale.tables)

    def refuse(_: int) -> None:
        delta, now_ms = sale.ledger.prepare(COUNTER, 1, **sale.named()), int(sale.now_ms)
        program = decide.decide_change(gates, delta)
        if run(program, table, partial(Instant, now_ms, now_ms)).outcome != REFUSED:
            raise AssertionError("more was sold than there is")

    return sale.rounds(0, changes, 100, refuse)


def again(changes: int = 50) -> float:
    """Write units of a change that is sent again at once."""
    sale, units = Sale(), 0
    for _ in range(changes):
        sale.now_ms += 100
        named = sale.named()
        sale.ledger.add(COUNTER, 1, **named)
        units += sale.charged(partial(sale.ledger.add, COUNTER, 1, **named)).write_units
    return units / changes


def held(open_holds: int, every_ms: float, holds: int = 200) -> float:
    """Write units of a hold and its end together, with so many open; four of five captured, the
    fifth released.
    """
    sale, waiting = Sale(), list[Hold]()
    length = timedelta(milliseconds=3 * open_holds * every_ms)

    def hold(number: int) -> None:
        waiting.append(sale.ledger.hold(COUNTER, 1, expires=length, **sale.named()))
        if len(waiting) > open_holds:
            ended = waiting.pop(0)
            if number % 5:
                ended.capture()
            else:
                ended.release()

    return sale.rounds(open_holds + WARM, holds, every_ms, hold)


def read() -> Charge:
    """Of a strong read of one lane."""
    sale = Sale()
    sale.rounds(WARM, 0, 10, lambda _: sale.add())
    values = list[int]()
    charge = sale.charged(lambda: values.append(sale.reader.read(COUNTER).value))
    if values != [WARM]:
        raise AssertionError("the read is wrong")
    return charge


def flash_sale(regions: int, seats: int) -> float:
    """Requests across Regions for 1,000 seats sold; six buyers for five seats come within a
    minute, one by one.
    """
    sale, drawn, across, sold = Sale(seats, regions), Random(1), 0, 0
    buyers = seats * 6 // 5
    for number in range(buyers):
        if number % (buyers // COPIES) == 0:
            sale.copy()
        sale.now_ms += SALE_MS / buyers
        (home,) = drawn.choices(sale.homes, SHARES[regions])
        away = [table for region, table in sale.tables.items() if region != home]
        with suppress(LimitReached):
            across += cost(partial(sale.add, home), away).requests
            sold += 1
    if sold != seats:
        raise AssertionError(f"{sold:,} of {seats:,} seats were sold")
    return across * 1_000 / seats


def in_past(keys: int, size: int = 40, rate: int = 500) -> int:
    """Write units of the dearest of some keys that are sent again, after so many were decided in
    groups.
    """
    sale, repeated = Sale(), list[Change]()
    for number in range(keys // size):
        sale.now_ms += 1_000 * size / rate
        changes = [Change(COUNTER, 1, **sale.named()) for _ in range(size)]
        sale.ledger.add_many(changes)
        repeated += (
            changes[:: size - 1] if number in (0, keys // size // 2, keys // size - 1) else ()
        )
    adds = (
        partial(sale.ledger.add, COUNTER, 1, idempotency_key=change.idempotency_key, at=change.at)
        for change in repeated
    )
    units = [sale.charged(add).write_units for add in adds]
    if sale.reader.read(COUNTER).value != keys:
        raise AssertionError("a key counted twice, or not at all")
    return max(units)


RATES = (1, 10, 100)
FEW, MANY = (2, 10), (2, 10, 100, 1_000, 3_000)
"""Open holds."""


def adds(small: bool) -> Iterator[Figure]:
    changes = 100 if small else 400
    units, rate = max((singly(rate, changes=changes)[0], rate) for rate in RATES)
    requests = singly(10)[1]
    yield Figure(f"limited: write units an add, worst of 1 to 100 a second ({rate})", units, 1.2, 1)
    yield Figure("limited: requests of an add where there is enough, median", requests, 1, 1)
    late, in_group = singly(100, 2_000, changes)[0], in_groups(500, 30, 2_000, 30 if small else 60)
    yield Figure("limited: write units an add, 100 a second, up to 2 s late", late, 1.7, 1)
    yield Figure(
        "limited: write units an add in groups of 30, 500 a second, 2 s late", in_group, 0.4, 1 / 30
    )
    yield Figure("limited: write units an add that is refused, two Regions", refused(), 1.5, 1)
    yield Figure("limited: write units an add that is sent again", again(), 1, 1)


def holds(small: bool) -> Iterator[Figure]:
    for sizes, most in ((FEW, 2.6), (MANY, 5.6))[: 1 if small else 2]:
        worst = max((held(size, 1_000 / rate), size, rate) for size in sizes for rate in (1, 30))
        where = f"2 to {sizes[-1]:,} open, 1 and 30/s, worst ({worst[1]:,} at {worst[2]})"
        yield Figure(f"limited: write units, hold and end, {where}", worst[0], most, 2)


def retries(small: bool) -> Iterator[Figure]:
    keys = 4_000 if small else 100_000
    yield Figure(
        f"limited: write units of a retry, {keys:,} keys decided in groups", in_past(keys), 3, 1
    )


def reads(small: bool) -> Iterator[Figure]:
    reading = read()
    yield Figure("limited: requests of a read of a lane", reading.requests, 1, 1)
    yield Figure("limited: read units of a lane", reading.read_units, 1, 1)
    for regions in SHARES:
        across = flash_sale(regions, 600 if small else 2_400)
        yield Figure(
            f"limited: requests across {regions} Regions per 1,000 seats sold", across, 60, 0.1
        )


PARTS = (adds, holds, retries, reads)
