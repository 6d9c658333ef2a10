"""Group commit: who leads, who travels together, and that everybody gets an outcome of its own."""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import Any

import pytest

from ledger import Ledger, gather
from ledger.errors import InvalidInput, OutcomeUnknown, Throttled, Unavailable
from ledger.gather import Gatherer
from ledger.lane.add import Outcome, failed
from ledger.memory import MemoryTable
from ledger.requests import Put, Request
from ledger.values import Delta, Lane, Receipt
from reader import Reader
from tests.world import A, B, delta, settings

LINES = Path(gather.__file__).read_text().splitlines()


class Sends:
    """Remembers what it is to send, and waits until it is let."""

    def __init__(self) -> None:
        self.batches: list[list[Delta]] = []
        self.let = threading.Semaphore(0)
        self.failure: BaseException | None = None

    def __call__(self, deltas: Sequence[Delta]) -> list[Outcome]:
        self.batches.append([*deltas])
        self.let.acquire()
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

    def patient(self) -> int:
        return sum(len(queue.patient) for queue in [*self.gatherer._queues.values()])

    def came(self) -> int:
        queues = list(self.gatherer._queues.values())
        return sum(map(len, self.sends.batches)) + sum(len(queue.waiting) for queue in queues)

    def sent(self) -> list[list[int]]:
        return [[each.change.bit_length() // 2 for each in batch] for batch in self.sends.batches]


def until(true: Callable[[], bool]) -> None:
    while not true():
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
    assert first.result() == Receipt("recorded", delta(1))
    assert adding.sent() == [[1]]


def test_what_comes_while_a_put_is_in_flight_leaves_together_when_it_returns(adding: Adding) -> None:
    (first,) = adding.add(1)
    others = adding.add(2, 3, 4)
    assert adding.sent() == [[1]]
    adding.sends.let.release()
    assert first.result().outcome == "recorded"
    until(lambda: len(adding.sent()) == 2)
    later = adding.add(5)
    adding.sends.let.release(2)
    assert [each.result() for each in others] == [Receipt("accepted", delta(n)) for n in (2, 3, 4)]
    assert later[0].result() == Receipt("recorded", delta(5))
    assert adding.sent() == [[1], [2, 3, 4], [5]]


def test_a_lane_does_not_wait_for_another(adding: Adding) -> None:
    adding.add(1)
    other = adding.pool.submit(adding.gatherer.add, delta(2, Lane(B, 0, "stock:85123A")))
    until(lambda: adding.sent() == [[1], [2]])
    adding.sends.let.release(2)
    assert other.result().outcome == "recorded"


def test_a_pack_has_a_bound_and_the_rest_follows_in_order(adding: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "PACK_CHANGES", 2)
    every = adding.add(1, 2, 3, 4, 5, 6)
    adding.sends.let.release(10)
    assert {each.result().delta for each in every} == {*map(delta, range(1, 7))}
    assert adding.sent() == [[1], [2, 3], [4, 5], [6]]


def test_a_stuck_put_holds_nobody_for_long_and_few_puts_are_in_flight(
    adding: Adding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "IN_FLIGHT_MAX", 2)
    monkeypatch.setattr(gather, "WAIT_S", 0.01)
    adding.add(1, 2)
    until(lambda: adding.sent() == [[1], [2]])
    adding.add(3, 4)
    until(lambda: adding.patient() == 2)
    assert adding.sent() == [[1], [2]]
    adding.sends.let.release(3)
    until(lambda: adding.sent() == [[1], [2], [3, 4]])


class Woken(SimpleQueue[None]):
    """Notes how long it was to wait, and lets nobody go on before `let`, if there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float | None] = []
        self.let: threading.Event | None = None

    def get(self, block: bool = True, timeout: float | None = None) -> None:
        self.times.append(timeout)
        super().get(block, timeout)
        if self.let is not None:
            self.let.wait()


def test_who_waits_while_as_many_lead_as_may_has_no_timer_and_whoever_makes_them_fewer_wakes_it(
    adding: Adding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first two are in flight. The third has its turn when one of them ends, and its thread does not come to it."""
    monkeypatch.setattr(gather, "IN_FLIGHT_MAX", 2)
    monkeypatch.setattr(gather, "WAIT_S", 0.001)
    waiters: dict[Delta, gather.Waiter] = {}
    made = gather.Waiter

    def make(delta: Delta) -> gather.Waiter:
        waiters[delta] = made(delta, Woken())
        return waiters[delta]

    monkeypatch.setattr("ledger.gather.Waiter", make)
    adding.add(1, 2)
    until(lambda: adding.sent() == [[1], [2]])
    third, fourth = adding.add(3, 4)
    until(lambda: adding.patient() == 2)
    starved, woken = (waiters[delta(number)].woken for number in (3, 4))
    assert isinstance(starved, Woken)
    assert isinstance(woken, Woken)
    assert woken.times[-1] is None
    starved.let = threading.Event()
    adding.sends.let.release(2)
    until(lambda: adding.sent()[2:] == [[3, 4]])  # by the fourth, which waited for its time again
    assert not third.done()
    adding.sends.let.release()
    assert fourth.result() == Receipt("accepted", delta(4))
    starved.let.set()
    assert third.result() == Receipt("accepted", delta(3))


def full(adding: Adding, monkeypatch: pytest.MonkeyPatch) -> tuple[gather.Queue, list[gather.Waiter]]:
    """Two lead, as many as may, and have their turns before them; two are patient."""
    monkeypatch.setattr(gather, "IN_FLIGHT_MAX", 2)
    monkeypatch.setattr(gather, "PACK_CHANGES", 2)
    queue = gather.Queue(delta(1).lane)
    adding.gatherer._queues[queue.lane] = queue
    waiters = [gather.Waiter(delta(number)) for number in range(1, 5)]
    queue.waiting.extend(waiters)
    for each in waiters[:2]:
        adding.gatherer._give_turn(queue, each)
    for each in waiters[2:]:
        assert adding.gatherer._patience_s(queue, each) is None
    return queue, waiters


def no_wake_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gather.Queue, "wake", lambda queue: None)


def none_by_whoever_is_interrupted(patch: pytest.MonkeyPatch) -> None:
    leave: Any = Gatherer._leave
    patch.setattr(Gatherer, "_leave", lambda *of, gone=False: None if gone else leave(*of))


def one_is_enough(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gather.Queue, "wake", lambda queue: queue.patient and queue.patient.pop().woken.put(None))


@pytest.mark.parametrize("mistake", [None, no_wake_up, none_by_whoever_is_interrupted, one_is_enough])
def test_all_who_are_patient_are_woken_however_a_turn_ends_and_each_mistake_is_seen(
    mistake: Callable[[pytest.MonkeyPatch], None] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sent along by another's turn, or interrupted before its own: then fewer lead than may."""
    if mistake is not None:
        mistake(monkeypatch)
    missed = 0
    for interrupted in (False, True):
        adding = Adding()
        queue, (first, _, *patient) = full(adding, monkeypatch)
        if interrupted:
            adding.gatherer._leave(first, gone=True)
        else:
            adding.sends.let.release()
            adding.gatherer._lead(queue, first)
        missed += sum(each.woken.empty() for each in patient)
    assert missed == 0 if mistake is None else missed > 0


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


@pytest.mark.parametrize("failure", [None, ZeroDivisionError])
def test_who_leads_others_and_is_sent_by_another_leader_wakes_those_it_led(
    failure: type[Exception] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "PACK_CHANGES", 2)
    batches: list[Sequence[Delta]] = []

    def send(deltas: Sequence[Delta]) -> list[Outcome]:
        batches.append(deltas)
        if len(batches) == 1:  # while this put is in flight, the last one leads, and leaves nobody behind
            gatherer._give_turn(queue, waiters[3])
            gatherer._lead(queue, waiters[3])
            assert gatherer._queues == {}
            if failure is not None:
                raise failure
        return [Receipt("accepted", each) for each in deltas]

    gatherer, queue = Gatherer(send), gather.Queue(delta(1).lane)
    gatherer._queues[queue.lane] = queue
    waiters = [gather.Waiter(delta(number)) for number in (1, 2, 3, 4)]
    queue.waiting.extend(waiters)
    gatherer._give_turn(queue, waiters[2])
    try:
        gatherer._lead(queue, waiters[2])
    except ZeroDivisionError:
        gatherer._leave(waiters[2], gone=True)
    assert [len(batch) for batch in batches] == [2, 2]
    assert not any(each.outcome is None or each.woken.empty() for each in waiters)


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


@pytest.mark.parametrize("at_once", [1, 4])
def test_who_is_interrupted_at_any_line_leaves_nothing_behind_and_the_others_go_on(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal raises between two lines of the main thread: here at each line of gather.py in turn."""
    monkeypatch.setattr(gather, "IN_FLIGHT_MAX", at_once)
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
                outcome = other.exception()
                assert outcome is None or isinstance(outcome, OutcomeUnknown | Unavailable)
            closing.result()
        assert gatherer._queues == {}
    assert line > 20


def test_a_failure_reaches_every_change_of_the_pack_as_an_error_of_its_own(adding: Adding) -> None:
    every = adding.add(1, 2, 3)
    adding.sends.failure = Throttled("slower")
    adding.sends.let.release(2)
    failures = [each.exception() for each in every]
    assert [getattr(failure, "delta", None) for failure in failures] == [*map(delta, (1, 2, 3))]
    assert len({*map(id, failures)}) == 3


def test_a_leader_that_is_interrupted_leaves_nobody_without_an_outcome(adding: Adding) -> None:
    (first, *others) = adding.add(1, 2, 3)
    adding.sends.failure = ZeroDivisionError()
    adding.sends.let.release(2)
    assert first.result().outcome == "recorded"
    assert isinstance(others[0].exception(), ZeroDivisionError)
    failure = others[1].exception()
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
    closing.result()
    assert [each.result().outcome for each in every] == ["recorded", "accepted", "accepted"]
    assert adding.sent() == [[1], [2, 3]]


def test_who_comes_to_a_full_queue_waits_outside(adding: Adding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "WAITING_MAX", 2)
    adding.add(1, 2, 3)
    outside = adding.pool.submit(adding.gatherer.add, delta(4))
    until(lambda: bool(getattr(adding.gatherer._changed, "_waiters")))  # noqa: B009, no public name
    assert adding.came() == 3
    adding.sends.let.release(3)
    assert outside.result().delta == delta(4)
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
