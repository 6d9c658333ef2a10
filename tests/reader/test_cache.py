"""The caches of `Reader` and `AsyncReader`: how old an answer may be; and one load for many
threads.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from ledger.core import clocks
from ledger.core.errors import DamagedItem, Unavailable
from ledger.core.requests import GetMany, Instant, Request, Together
from reader import Reader
from reader import cache as caches
from reader.aio import AsyncReader
from tests.world import COUNTER, NOW_MS, Awaited, Region, compactor, delta, folded, settings

TIMEOUT_S = 120  # bounds a hang alone


Make = Callable[..., Any]
"""Makes a reader of a table, with the table's clock unless another is given."""


@pytest.fixture(params=[Reader, AsyncReader])
def reader(request: pytest.FixtureRequest) -> Make:
    def make(table: Region, ttl: float = 5.0, clock: Callable[[], int] | None = None) -> Any:
        made = request.param(settings(), ttl, table=table, clock=clock or (lambda: table.now_ms))
        return Awaited(made) if isinstance(made, AsyncReader) else made

    return make


def loads(table: Region) -> int:
    return sum(isinstance(request, GetMany) for request in table.asked)


def test_a_balance_from_the_cache_says_so_and_keeps_its_time(reader: Make) -> None:
    table = Region()
    cached = reader(table)
    # unless told how old it may be
    assert [cached.read(COUNTER).cached for _ in range(3)] == [False] * 3
    assert loads(table) == 3
    first = cached.read(COUNTER)
    table.now_ms += 1_000
    second = cached.read(COUNTER, max_age=5)
    assert (first.cached, second.cached, second.as_of) == (False, True, first.as_of)
    table.put(delta(1))
    cached.read(COUNTER)
    # what a read found is what value answers
    assert (cached.value(COUNTER), loads(table)) == (4, 5)


def test_a_balance_that_is_changed_does_not_change_the_cache(reader: Make) -> None:
    table = Region()
    cached = reader(table)
    for _ in range(3):
        by_region = cached.read(COUNTER, max_age=5).by_region
        assert by_region == {"eu-west-1": 0, "us-east-1": 0}
        with suppress(TypeError):  # a balance that cannot be changed is as good
            by_region["eu-west-1"] = 99


def test_the_smaller_of_max_age_and_ttl_decides(reader: Make) -> None:
    for ttl, max_age in ((5, 1), (1, 60)):
        for age_ms, loaded in ((999, 1), (1_000, 2)):
            table = Region()
            cached = reader(table, ttl)
            cached.read(COUNTER, max_age=max_age)
            table.now_ms += age_ms
            assert cached.read(COUNTER, max_age=max_age).cached == (loaded == 1)
            assert loads(table) == loaded


def test_a_clock_that_steps_back_empties_the_cache(
    reader: Make,
) -> None:
    table = Region()
    cached = reader(table)
    cached.value(COUNTER)
    table.put(delta(1))
    table.now_ms -= 3_600_000
    assert cached.value(COUNTER) == 4
    table.put(delta(2))
    table.now_ms -= 3_600_000
    assert cached.values([COUNTER]) == {COUNTER: 20}
    assert loads(table) == 3


def test_a_balance_is_as_old_as_its_older_clock_says(
    reader: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Region()
    monkeypatch.setattr(clocks, "instants", lambda clock: lambda: Instant(clock(), table.steady_ms))
    cached = reader(table)
    for wall_ms, steady_ms, loaded in (
        (4_999, 4_999, False),
        (0, 5_000, True),  # the clock stepped back, and then as much time passed
        (4_000, 3_600_000, True),
        (5_000, 0, True),  # the machine slept: its steady clock stood still
        (-1, 1, True),
    ):
        cached.read(COUNTER)
        table.asked.clear()
        table.now_ms, table.steady_ms = table.now_ms + wall_ms, table.steady_ms + steady_ms
        assert (cached.values([COUNTER]), cached.value(COUNTER)) == ({COUNTER: 0}, 0)
        assert loads(table) == loaded


def test_of_two_reads_the_one_that_began_later_is_kept() -> None:
    """A read begins; a change counts; another read has it, and is done before the first."""
    table = Region()
    cached = Reader(settings(), table=table, clock=lambda: table.now_ms)

    def meanwhile(_: Request, answer: Any) -> Any:
        table.put(delta(1))
        assert cached.read(COUNTER).value == 4
        return answer

    table.after(Together, meanwhile, times=1)
    assert cached.values([COUNTER]) == {COUNTER: 0}
    assert cached.value(COUNTER) == 4


def test_of_two_reads_of_tasks_too() -> None:
    async def main() -> None:
        table, go = Region(), asyncio.Event()

        async def late(answer: Any) -> Any:
            await go.wait()
            return answer

        table.after(Together, lambda _, answer: late(answer), times=1)
        async with AsyncReader(settings(), table=table, clock=lambda: table.now_ms) as cached:
            first = asyncio.ensure_future(cached.values([COUNTER]))
            while not any(isinstance(request, Together) for request in table.asked):
                await asyncio.sleep(0)
            table.put(delta(1))
            assert (await cached.read(COUNTER)).value == 4
            go.set()
            assert await first == {COUNTER: 0}
            assert await cached.value(COUNTER) == 4

    asyncio.run(main())


def test_the_age_of_a_balance_begins_with_its_read(reader: Make) -> None:
    asks: tuple[Callable[[Any], object], ...] = (
        lambda cached: cached.value(COUNTER),
        lambda cached: cached.values([COUNTER]),
        lambda cached: cached.read(COUNTER, max_age=60),
    )
    for ask in asks:
        table = Region().takes(1_000, GetMany)
        cached = reader(table)
        ask(cached)
        table.now_ms += 4_000
        ask(cached)
        assert loads(table) == 2


def test_an_answer_that_may_be_behind_is_never_cached(
    reader: Make,
) -> None:
    table, _ = folded(1, 2, later=(3,))
    cached = reader(table, 3_600)
    assert cached.read(COUNTER, behind=1_000).value == 4 + 16
    assert cached.value(COUNTER) == 4 + 16 + 64
    assert cached.read(COUNTER, max_age=5, behind=1_000).value == 4 + 16
    assert cached.value(COUNTER) == 4 + 16 + 64


def test_a_failed_load_is_not_kept(
    reader: Make,
) -> None:
    table = Region()
    cached = reader(table)
    table.down = True
    with pytest.raises(Unavailable):
        cached.value(COUNTER)
    table.down = False
    table.put(delta(1))
    compactor(table, Region()).compact(COUNTER)
    assert cached.value(COUNTER) == 4
    table.store([{"pk": {"S": f"fold#eu-west-1#0#{COUNTER}"}, "sk": {"S": "checkpoint"}}])
    table.now_ms += 5_000
    for _ in range(2):
        with pytest.raises(DamagedItem):
            cached.value(COUNTER)


class Busy:
    """A table whose loads wait until so many threads have asked its clock, for this reader of
    it.
    """

    def __init__(self, threads: int, failing: int = 0) -> None:
        self.threads, self.failing = threads, failing
        self.began, self.everybody = threading.Event(), threading.Event()
        self.came: set[int] = set()
        self.loads: list[Request] = []
        self.table = Region().after(GetMany, self.after)
        self.table.put(delta(1))
        self.reader = Reader(settings(), table=self.table, clock=self.clock)

    def clock(self) -> int:
        self.came.add(threading.get_ident())
        if len(self.came) == self.threads:
            self.everybody.set()
        return self.table.now_ms

    def after(self, request: Request, answer: Any) -> Any:
        self.loads.append(request)
        fails = len(self.loads) <= self.failing
        self.began.set()
        assert self.everybody.wait(TIMEOUT_S)
        if fails:
            raise Unavailable("the first load fails")
        return answer


def test_threads_that_ask_at_once_cause_one_load() -> None:
    for number, fails in ((100, 0), (8, 1)):
        busy = Busy(number, fails)
        with ThreadPoolExecutor(number) as threads:
            asked = [threads.submit(busy.reader.value, COUNTER) for _ in range(number)]
        answers = [str(each.exception() or each.result()) for each in asked]
        assert sorted(answers) == ["4"] * (number - fails) + ["the first load fails"] * fails
        assert len(busy.loads) == 1 + fails


def test_a_thread_that_waits_gets_no_older_balance_than_asked() -> None:
    """The load began ten seconds before the second thread asked for a balance of at most five."""
    busy = Busy(2)
    first = threading.Thread(target=busy.reader.value, args=(COUNTER,), daemon=True)
    first.start()
    assert busy.began.wait(TIMEOUT_S)
    busy.table.now_ms += 10_000
    balance = busy.reader.read(COUNTER, max_age=5)
    first.join(TIMEOUT_S)
    assert balance.as_of.timestamp() > (NOW_MS + 5_000) / 1_000


def test_the_cache_keeps_the_latest_up_to_its_bound(
    reader: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caches, "COUNTERS_MAX", 2)
    table = Region()
    cached = reader(table, 3_600)
    for counter in ("a", "b", "a", "c"):
        cached.value(counter)
    table.asked.clear()
    cached.values(["a", "c"])
    assert loads(table) == 0
    cached.value("b")
    assert loads(table) == 1
