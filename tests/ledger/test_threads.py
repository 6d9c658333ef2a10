"""One Ledger and one Reader, used by many threads at once, also where no lock of the interpreter orders them."""

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from ledger import Change, Ledger, Limit, Receipt
from ledger.errors import LimitReached
from ledger.memory import MemoryTable
from ledger.requests import Update
from ledger.writer import LANES_AT_ONCE
from reader import Reader
from tests.world import A, Region, settings

THREADS, EACH = 8, 60
SEATS = THREADS * EACH // 2
SETTINGS = settings(regions=(A,), limits={"seats:": Limit(ceiling=SEATS, region=A)})


@pytest.fixture
def _switches_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_switches_often")
@pytest.mark.parametrize("gather", [False, True])
def test_threads_that_add_sell_and_read_lose_double_and_oversell_nothing(gather: bool) -> None:
    table, at = MemoryTable(), datetime.now(UTC)
    ledger, reader = Ledger(SETTINGS, table=table, gather=gather), Reader(SETTINGS, 0.001, table=table)

    def work(thread: int) -> tuple[int, int]:
        """What it sold, and the value that it read last."""
        sold = value = 0
        for n in range(EACH):
            key = f"all {n}" if n % 2 else f"{thread} {n}"
            ledger.add("votes", 1, idempotency_key=key, at=at)
            try:
                ledger.add("seats:gig", 1)
            except LimitReached:
                continue
            sold += 1
            read = reader.value("votes")
            assert read >= value
            value = read
        return sold, value

    with ThreadPoolExecutor(THREADS) as threads:
        sold, values = zip(*threads.map(work, range(THREADS)), strict=True)
    ledger.close()
    assert reader.read("votes").value == EACH // 2 + SEATS >= max(values)
    assert sum(sold) == reader.standing("seats:gig").value == SEATS


def test_the_limited_lanes_of_a_batch_are_asked_at_once() -> None:
    """The table answers the first update of each lane when those of all lanes have come."""
    table, all_came = Region(), threading.Barrier(LANES_AT_ONCE)
    for n in range(LANES_AT_ONCE):
        of_lane = f"seats:{n}"
        table.before(
            lambda request, of_lane=of_lane: isinstance(request, Update) and request.key.pk.endswith(of_lane),
            lambda _: all_came.wait(timeout=20),
            times=1,
        )
    outcomes = Ledger(SETTINGS, table=table).add_many([Change(f"seats:{n}", 1) for n in range(LANES_AT_ONCE)])
    assert all(isinstance(outcome, Receipt) for outcome in outcomes)
