"""One Ledger and one Reader, used by many threads at once, also where no lock of the interpreter orders them."""

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from ledger import Change, Ledger, Limit, Receipt, Settings
from ledger.errors import LimitReached
from ledger.memory import MemoryTable
from ledger.requests import Request, Update
from ledger.writer import LANES_AT_ONCE
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


class Meeting(MemoryTable):
    """Answers the first update of each lane when those of all lanes have come."""

    def __init__(self, lanes: int) -> None:
        super().__init__()
        self._lanes, self._all_came = {f"seats:{n}" for n in range(lanes)}, threading.Barrier(lanes)

    def answer(self, request: Request, /) -> Any:
        counter = request.key.pk.rpartition("#")[2] if isinstance(request, Update) else ""
        if counter in self._lanes:
            self._lanes.remove(counter)
            self._all_came.wait(timeout=20)
        return super().answer(request)


def test_the_limited_lanes_of_a_batch_are_asked_at_once() -> None:
    settings = Settings(table="counters", region="eu-west-1", limits=LIMITS)
    ledger = Ledger(settings, table=Meeting(LANES_AT_ONCE))
    outcomes = ledger.add_many([Change(f"seats:{n}", 1) for n in range(LANES_AT_ONCE)])
    assert all(isinstance(outcome, Receipt) for outcome in outcomes)
