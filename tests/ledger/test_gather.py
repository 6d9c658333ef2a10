"""Group commit: who leads, who travels together, everybody's own outcome; and many threads, also
without it.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from ledger import Change, Cost, Ledger, Limit
from ledger.client import gather
from ledger.client.gather import Gatherer
from ledger.client.writer import LANES_AT_ONCE
from ledger.core.cost import Meter, here
from ledger.core.errors import InvalidInput, LimitReached, OutcomeUnknown, Throttled, Unavailable
from ledger.core.requests import Put
from ledger.core.values import Delta, Lane, Receipt
from ledger.lane.add import Outcome, failed
from ledger.tables.memory import MemoryTable
from reader import Reader
from tests.world import COUNTER, A, B, Region, World, delta, fail, settings, writes_of

LINES = Path(gather.__file__).read_text().splitlines()


HANG_S = 30
"""Far more than any of this takes: what is not so by then is wrong, and hangs."""


def until(true: Callable[[], bool]) -> None:
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < HANG_S, "nothing happens any more"
        time.sleep(0.001)


class Answer(Future[Any]):
    def result(self, timeout: float | None = HANG_S) -> Any:
        return super().result(timeout)

    def exception(self, timeout: float | None = HANG_S) -> BaseException | None:
        return super().exception(timeout)


class Threads:
    """As a ThreadPoolExecutor, but neither the next test nor the end of the process waits for
    one that hangs.
    """

    def submit(self, call: Callable[..., Any], *args: object) -> Answer:
        future = Answer()

        def work() -> None:
            try:
                future.set_result(call(*args))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        return future


class Adding:
    """Adds from threads of its own, one after the other into the queue, so that their order is
    known.

    A put is noted in `batches` and waits until it is `let`; it may fail.
    """

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.let = threading.Semaphore(0)
        self.failure: BaseException | None = None
        self.gatherer = Gatherer(self.put, lambda lane: lane.region == B)
        self.pool = Threads()

    def put(self, deltas: Sequence[Delta]) -> list[Outcome]:
        self.batches.append([each.change.bit_length() // 2 for each in deltas])
        self.let.acquire()
        if isinstance(self.failure, Throttled):
            return [failed(self.failure, each) for each in deltas]
        if self.failure is not None and len(deltas) > 1:
            raise self.failure
        return [Receipt("accepted" if len(deltas) > 1 else "recorded", each) for each in deltas]

    def add(self, *numbers: int) -> list[Future[Receipt]]:
        return [self._one(delta(number)) for number in numbers]

    def _one(self, each: Delta) -> Future[Receipt]:
        known = self.came()
        adding = self.pool.submit(self.gatherer.add, each)
        until(lambda: self.came() > known)
        return adding

    def came(self) -> int:
        waiting = sum(len(queue.waiting) for queue in [*self.gatherer._queues.values()])
        return sum(map(len, self.batches)) + waiting


@pytest.fixture
def adding(monkeypatch: pytest.MonkeyPatch) -> Iterator[Adding]:
    monkeypatch.setattr(gather, "WAIT_S", 10)
    adding = Adding()
    yield adding
    adding.let.release(1_000)
    until(lambda: adding.gatherer._queues == {})


def test_a_change_alone_goes_at_once_and_later_ones_together(
    adding: Adding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "PACK_CHANGES", 3)
    (first,) = adding.add(1)
    others = adding.add(2, 3, 4, 5, 6)
    assert adding.batches == [[1]]
    adding.let.release()
    assert first.result() == Receipt("recorded", delta(1))
    until(lambda: len(adding.batches) == 2)
    (later,) = adding.add(7)
    adding.let.release(3)
    assert [each.result() for each in [*others, later]] == [
        Receipt("accepted", delta(n)) for n in range(2, 8)
    ]
    assert adding.batches == [[1], [2, 3, 4], [5, 6, 7]]


def test_lanes_travel_together_and_a_limited_one_waits_for_none(
    adding: Adding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "LANES_MAX", 2)
    adding.add(1)
    for number, name in enumerate(("one", "two", "one", "three", "two"), 2):
        adding._one(delta(number, Lane(A, 0, name)))
    adding.pool.submit(adding.gatherer.add, delta(7, Lane(B, 0, "stock:85123A")))
    until(lambda: adding.batches == [[1], [7]])
    adding.let.release(3)
    until(lambda: adding.batches == [[1], [7], [2, 3, 4], [5, 6]])


def test_a_stuck_put_holds_nobody_for_long_and_few_are_in_flight(
    adding: Adding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "IN_FLIGHT_MAX", 2)
    monkeypatch.setattr(gather, "WAIT_S", 0.01)
    adding.add(1, 2)
    until(lambda: adding.batches == [[1], [2]])
    adding.add(3, 4)
    time.sleep(0.05)
    assert adding.batches == [[1], [2]]
    adding.let.release(3)
    until(lambda: adding.batches == [[1], [2], [3, 4]])


def test_who_is_first_when_others_leave_has_the_timer(
    adding: Adding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second came while the first put was stuck, and had none: it would wait for ever for
    the two.
    """
    monkeypatch.setattr(gather, "PACK_CHANGES", 1)
    monkeypatch.setattr(gather, "WAIT_S", 0.01)
    adding.add(1)
    adding.add(2, 3, 4)
    until(lambda: sorted(adding.batches) == [[1], [2], [3], [4]])


@pytest.mark.parametrize("at_once", [1, 4])
def test_an_interruption_at_any_line_leaves_nothing_behind(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal raises between two lines of the main thread: here at each line of gather.py in
    turn.
    """
    monkeypatch.setattr(gather, "IN_FLIGHT_MAX", at_once)
    line = ended = 0
    while not ended:
        line += 1
        adding = Adding()
        left = line

        def trace(frame: FrameType, event: str, _: object) -> Any:
            nonlocal left
            here = frame.f_code.co_filename == gather.__file__ and event == "line"
            # whose end a signal never hits
            if here and not LINES[frame.f_lineno - 1].strip().startswith("with "):
                left -= 1
                if left == 0:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return trace

        others = [adding.pool.submit(adding.gatherer.add, delta(number)) for number in (1, 2)]
        adding.let.release(10)
        tracing = sys.gettrace()
        sys.settrace(trace)
        try:
            adding.gatherer.add(delta(3))
            ended = left > 0
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(tracing)
        closing = adding.pool.submit(adding.gatherer.close)
        for other in others:
            outcome = other.exception()
            assert outcome is None or isinstance(outcome, OutcomeUnknown | Unavailable)
        closing.result()
        assert adding.gatherer._queues == {}
    assert line > 20


def test_a_change_alone_raises_the_tables_error() -> None:
    world, lost = World(), OutcomeUnknown("lost")
    lost.__cause__ = TimeoutError()
    world.home.after(Put, fail(lost))
    with pytest.raises(OutcomeUnknown) as raised:
        world.ledger(gather=True).add(COUNTER, 1)
    assert raised.value.__cause__ is lost.__cause__
    assert raised.value.delta is not None


def test_a_failure_reaches_each_and_an_interruption_the_leader(
    adding: Adding,
) -> None:
    every = adding.add(1, 2, 3)
    adding.failure = Throttled("slower")
    adding.let.release(2)
    failures = [each.exception() for each in every]
    assert [getattr(failure, "delta", None) for failure in failures] == [*map(delta, (1, 2, 3))]
    assert len({*map(id, failures)}) == 3
    (first, leader, other) = adding.add(4, 5, 6)
    adding.failure = ZeroDivisionError()
    adding.let.release(2)
    assert first.result().outcome == "recorded"
    assert isinstance(leader.exception(), ZeroDivisionError)
    failure = other.exception()
    assert isinstance(failure, OutcomeUnknown)
    assert failure.delta == delta(6)


def test_close_waits_for_each_outcome_and_says_what_was_not_sent(
    adding: Adding,
) -> None:
    every = adding.add(1, 2, 3)
    closing = adding.pool.submit(adding.gatherer.close)
    until(lambda: adding.gatherer._closed)
    with pytest.raises(Unavailable, match="Nothing was written") as refused:
        adding.gatherer.add(delta(4))
    assert refused.value.delta == delta(4)
    assert not closing.done()
    adding.let.release(2)
    closing.result()
    assert [each.result().outcome for each in every] == ["recorded", "accepted", "accepted"]


def test_close_refuses_who_waits_for_room(adding: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "WAITING_MAX", 2)
    monkeypatch.setattr(gather, "WAIT_S", 10 * HANG_S)  # no put makes room meanwhile
    adding.add(1, 2, 3)
    outside = adding.pool.submit(adding.gatherer.add, delta(4))
    until(lambda: bool(getattr(adding.gatherer._changed, "_waiters")))  # noqa: B009, no public name
    closing = adding.pool.submit(adding.gatherer.close)
    assert isinstance(outside.exception(), Unavailable)
    assert (adding.batches[0], closing.done()) == ([1], False)
    adding.let.release(3)
    closing.result()


def test_the_costs_of_a_batch_are_together_what_its_put_cost(
    adding: Adding, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, paid = adding.gatherer._send, Cost(1, 2, 3.0, 4.0)

    def costly(deltas: Sequence[Delta]) -> Sequence[Outcome]:
        here().add(paid)
        return put(deltas)

    def cost(number: int) -> Cost:
        with Meter() as meter:
            adding.gatherer.add(delta(number))
            return meter.take()

    monkeypatch.setattr(adding.gatherer, "_send", costly)
    first = adding.pool.submit(cost, 1)
    until(lambda: adding.batches == [[1]])
    others = []
    for number in (2, 3, 4, 5):
        others.append(adding.pool.submit(cost, number))
        until(lambda: adding.came() == 1 + len(others))
    adding.let.release(2)
    assert first.result() == paid
    assert [each.result() for each in others] == [Cost(0.25, 0.5, 0.75, 1.0)] * 4
    assert adding.batches == [[1], [2, 3, 4, 5]]


def test_a_closed_ledger_takes_nothing_more() -> None:
    world = World()
    ledger, plain = world.ledger(gather=True), world.ledger()
    for each in (ledger, plain):
        assert each.add(COUNTER, 1).outcome == "recorded"
        each.close()
    with pytest.raises(Unavailable):
        ledger.add(COUNTER, 1)
    assert plain.add(COUNTER, 1).outcome == "recorded"
    with pytest.raises(InvalidInput, match="gather"):
        world.ledger(gather=1)  # type: ignore[arg-type]


# -- many threads, with and without

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
@pytest.mark.parametrize("gathers", [False, True])
def test_threads_that_add_sell_and_read_stay_exact(gathers: bool) -> None:
    table, at = MemoryTable(), datetime.now(UTC)
    ledger, reader = (
        Ledger(SETTINGS, table=table, gather=gathers),
        Reader(SETTINGS, 0.001, table=table),
    )

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
        table.before(writes_of(f"seats:{n}"), lambda _: all_came.wait(timeout=20), times=1)
    outcomes = Ledger(SETTINGS, table=table).add_many(
        [Change(f"seats:{n}", 1) for n in range(LANES_AT_ONCE)]
    )
    assert all(isinstance(outcome, Receipt) for outcome in outcomes)
