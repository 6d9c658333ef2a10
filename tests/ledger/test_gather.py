"""Group commit: who leads, who travels together, and that everybody gets an outcome of its own."""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from ledger import Ledger, gather
from ledger.errors import InvalidInput, OutcomeUnknown, Throttled, Unavailable
from ledger.gather import Gatherer
from ledger.memory import MemoryTable
from ledger.packing import Outcome, failed
from ledger.requests import Put, Request
from ledger.values import Delta, Lane, Receipt
from reader import Reader
from tests.support import A, B, delta, settings

LINES = Path(gather.__file__).read_text().splitlines()


class Sends:
    """Remembers what it is to send, and waits until it is let."""

    def __init__(self) -> None:
        self.batches: list[list[Delta]] = []
        self.let = threading.Semaphore(0)
        self.failure: BaseException | None = None

    def __call__(self, deltas: Sequence[Delta]) -> list[Outcome]:
        self.batches.append([*deltas])
        assert self.let.acquire(timeout=10)
        if isinstance(self.failure, Throttled):
            return [failed(self.failure, each) for each in deltas]
        if self.failure is not None and len(deltas) > 1:
            raise self.failure
        return [Receipt("accepted" if len(deltas) > 1 else "recorded", each) for each in deltas]


class Adding:
    """Adds from threads of its own, one after the other into the queue, so that their order is known."""

    def __init__(self) -> None:
        self.sends = Sends()
        self.gatherer = Gatherer(self.sends)
        self.pool = ThreadPoolExecutor(16)

    def add(self, *numbers: int) -> list[Future[Receipt]]:
        return [self._one(delta(number)) for number in numbers]

    def _one(self, each: Delta) -> Future[Receipt]:
        known = self.came()
        adding = self.pool.submit(self.gatherer.add, each)
        until(lambda: self.came() > known)
        return adding

    def came(self) -> int:
        queues = list(self.gatherer._queues.values())
        return sum(map(len, self.sends.batches)) + sum(len(queue.waiting) for queue in queues)

    def sent(self) -> list[list[int]]:
        return [[each.change.bit_length() // 2 for each in batch] for batch in self.sends.batches]


def until(true: Callable[[], bool]) -> None:
    ends = time.monotonic() + 10
    while not true():
        assert time.monotonic() < ends, "it never came to that"
        time.sleep(0.001)


@pytest.fixture
def adding(monkeypatch: pytest.MonkeyPatch) -> Iterator[Adding]:
    monkeypatch.setattr(gather, "WAIT_S", 10)
    adding = Adding()
    yield adding
    adding.sends.let.release(1_000)
    adding.pool.shutdown()
    assert adding.gatherer._queues == {}


def test_a_change_alone_is_sent_at_once_and_alone(adding: Adding) -> None:
    (first,) = adding.add(1)
    adding.sends.let.release()
    assert first.result(10) == Receipt("recorded", delta(1))
    assert adding.sent() == [[1]]


def test_what_comes_while_a_put_is_in_flight_leaves_together_when_it_returns(adding: Adding) -> None:
    (first,) = adding.add(1)
    others = adding.add(2, 3, 4)
    assert adding.sent() == [[1]]
    adding.sends.let.release()
    assert first.result(10).outcome == "recorded"
    until(lambda: len(adding.sent()) == 2)
    later = adding.add(5)
    adding.sends.let.release(2)
    assert [each.result(10) for each in others] == [Receipt("accepted", delta(n)) for n in (2, 3, 4)]
    assert later[0].result(10) == Receipt("recorded", delta(5))
    assert adding.sent() == [[1], [2, 3, 4], [5]]


def test_a_lane_does_not_wait_for_another(adding: Adding) -> None:
    adding.add(1)
    other = adding.pool.submit(adding.gatherer.add, delta(2, Lane(B, 0, "stock:85123A")))
    until(lambda: adding.sent() == [[1], [2]])
    adding.sends.let.release(2)
    assert other.result(10).outcome == "recorded"


def test_a_pack_has_a_bound_and_the_rest_follows_in_order(adding: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "PACK_CHANGES", 2)
    every = adding.add(1, 2, 3, 4, 5, 6)
    adding.sends.let.release(10)
    assert {each.result(10).delta for each in every} == {*map(delta, range(1, 7))}
    assert adding.sent() == [[1], [2, 3], [4, 5], [6]]


def test_a_stuck_put_holds_nobody_for_long_and_few_puts_are_in_flight(
    adding: Adding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "IN_FLIGHT_MAX", 2)
    monkeypatch.setattr(gather, "WAIT_S", 0.01)
    adding.add(1, 2)
    until(lambda: adding.sent() == [[1], [2]])
    adding.add(3, 4)
    time.sleep(0.05)
    assert adding.sent() == [[1], [2]]
    adding.sends.let.release(3)
    until(lambda: adding.sent() == [[1], [2], [3, 4]])


def test_who_was_called_to_lead_and_is_taken_along_gives_its_turn_back(adding: Adding) -> None:
    queue = gather.Queue(delta(1).lane)
    adding.gatherer._queues[queue.lane] = queue
    called, tired = gather.Waiter(delta(1)), gather.Waiter(delta(2))
    queue.waiting.extend([called, tired])
    for each in (called, tired):
        adding.gatherer._give_turn(queue, each)
    adding.sends.let.release(2)
    adding.gatherer._lead(queue, tired)
    assert (called.outcome, queue.leaders) == (Receipt("accepted", delta(1)), set())
    adding.gatherer._lead(queue, called)
    assert adding.sent() == [[1, 2]]


def test_who_is_interrupted_while_it_gives_its_turn_on_gives_it_on_when_it_leaves(
    adding: Adding, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_turn, turns = adding.gatherer._give_turn, iter([False, True])

    def interrupted(queue: gather.Queue, waiter: gather.Waiter) -> None:
        if next(turns, False):
            raise KeyboardInterrupt
        give_turn(queue, waiter)

    monkeypatch.setattr(gather, "WAIT_S", 15)  # nobody leads uncalled
    monkeypatch.setattr(adding.gatherer, "_give_turn", interrupted)
    first, second = adding.add(1, 2)
    adding.sends.let.release(2)
    assert isinstance(first.exception(10), KeyboardInterrupt)
    assert second.result(10) == Receipt("recorded", delta(2))


def test_who_is_interrupted_at_any_line_leaves_nothing_behind_and_the_others_go_on() -> None:
    """A signal raises between two lines of the main thread: here at each line of gather.py in turn."""
    line = ended = 0
    while not ended:
        line += 1
        sends = Sends()
        gatherer = Gatherer(sends)
        left = line

        def trace(frame: FrameType, event: str, _: object) -> Any:
            nonlocal left
            here = frame.f_code.co_filename == gather.__file__ and event == "line"
            if here and not LINES[frame.f_lineno - 1].strip().startswith("with "):  # whose end a signal never hits
                left -= 1
                if left == 0:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return trace

        with ThreadPoolExecutor(3) as pool:
            others = [pool.submit(gatherer.add, delta(number)) for number in (1, 2)]
            sends.let.release(10)
            tracing = sys.gettrace()
            sys.settrace(trace)
            try:
                gatherer.add(delta(3))
                ended = left > 0
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(tracing)
            closing = pool.submit(gatherer.close)
            for other in others:
                outcome = other.exception(10)
                assert outcome is None or isinstance(outcome, OutcomeUnknown | Unavailable)
            closing.result(10)
        assert gatherer._queues == {}
    assert line > 20


def test_a_failure_reaches_every_change_of_the_pack_as_an_error_of_its_own(adding: Adding) -> None:
    every = adding.add(1, 2, 3)
    adding.sends.failure = Throttled("slower")
    adding.sends.let.release(2)
    failures = [each.exception(10) for each in every]
    assert [getattr(failure, "delta", None) for failure in failures] == [*map(delta, (1, 2, 3))]
    assert len({*map(id, failures)}) == 3


def test_a_leader_that_is_interrupted_leaves_nobody_without_an_outcome(adding: Adding) -> None:
    (first, *others) = adding.add(1, 2, 3)
    adding.sends.failure = ZeroDivisionError()
    adding.sends.let.release(2)
    assert first.result(10).outcome == "recorded"
    assert isinstance(others[0].exception(10), ZeroDivisionError)
    failure = others[1].exception(10)
    assert isinstance(failure, OutcomeUnknown)
    assert failure.delta == delta(3)


def test_close_returns_when_each_that_was_taken_has_its_outcome_and_says_what_was_not(adding: Adding) -> None:
    every = adding.add(1, 2, 3)
    closing = adding.pool.submit(adding.gatherer.close)
    until(lambda: adding.gatherer._closed)
    with pytest.raises(Unavailable, match="Nothing was written") as refused:
        adding.gatherer.add(delta(4))
    assert refused.value.delta == delta(4)
    assert not closing.done()
    adding.sends.let.release(2)
    closing.result(10)
    assert [each.result(10).outcome for each in every] == ["recorded", "accepted", "accepted"]
    assert adding.sent() == [[1], [2, 3]]


def test_who_comes_to_a_full_queue_waits_outside(adding: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "WAITING_MAX", 2)
    adding.add(1, 2, 3)
    outside = adding.pool.submit(adding.gatherer.add, delta(4))
    time.sleep(0.02)
    assert adding.came() == 3
    adding.sends.let.release(3)
    assert outside.result(10).delta == delta(4)
    assert adding.sent()[:2] == [[1], [2, 3]]


class Slow(MemoryTable):
    """Takes its time over puts, and loses the answers of some."""

    def __init__(self) -> None:
        super().__init__()
        self.puts = 0

    def answer(self, request: Request, /) -> object:
        answer = super().answer(request)
        if isinstance(request, Put):
            self.puts += 1
            time.sleep(0.002)
            if self.puts % 7 == 0:
                raise OutcomeUnknown("lost")
        return answer


def test_many_threads_on_a_table_that_loses_answers_count_every_change_once() -> None:
    table, wanted = Slow(), settings(A)
    ledger = Ledger(wanted, table=table, gather=True)
    counters = ("stock", "seats", "votes")

    def outcome_of(change: Delta) -> str:
        while True:
            try:
                return ledger.apply(change).outcome
            except OutcomeUnknown:
                continue

    with ThreadPoolExecutor(24) as pool:
        outcomes = {*pool.map(outcome_of, [ledger.prepare(counters[n % 3], 1) for n in range(480)])}
    ledger.close()
    assert outcomes >= {"recorded", "accepted"}
    assert Reader(wanted, table=table).values(counters) == dict.fromkeys(counters, 160)
    assert table.puts < 480 / 2
    with pytest.raises(Unavailable):
        ledger.add("stock", 1)


def test_a_ledger_that_does_not_gather_has_nothing_to_close() -> None:
    ledger = Ledger(settings(A), table=MemoryTable())
    ledger.close()
    assert ledger.add("stock", 1).outcome == "recorded"
    with pytest.raises(InvalidInput, match="gather"):
        Ledger(settings(A), table=MemoryTable(), gather=1)  # type: ignore[arg-type]
