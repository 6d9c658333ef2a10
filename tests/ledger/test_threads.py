"""One Ledger and one Reader, used by many threads at once, also where no lock of the interpreter orders them."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from ledger import Ledger, Limit, Settings
from ledger.errors import LimitReached
from ledger.memory import MemoryTable
from reader import Reader

THREADS, EACH = 8, 60
SEATS = THREADS * EACH // 2
LIMITS = {"seats:": Limit(ceiling=SEATS, region="eu-west-1")}


@pytest.fixture
def _switches_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_switches_often")
@pytest.mark.parametrize("gather", [False, True])
def test_threads_that_add_sell_and_read_lose_double_and_oversell_nothing(gather: bool) -> None:
    settings, table = Settings(table="counters", region="eu-west-1", limits=LIMITS), MemoryTable()
    ledger, reader = Ledger(settings, table=table, gather=gather), Reader(settings, 0.001, table=table)
    at = datetime.now(UTC)

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
    votes = EACH // 2 + THREADS * EACH // 2
    assert reader.read("votes").value == votes >= max(values)
    assert sum(sold) == reader.standing("seats:gig").value == SEATS
