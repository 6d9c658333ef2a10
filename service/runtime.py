"""What answers the requests of the service's programs: the table, the work queue and the event bus.

Rule 1: The functions' logic is programs that yield requests, like the protocol's, so the tests stop
and crash the shipped code between any two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

from ledger.core.clocks import Clock, instants, wall_clock
from ledger.core.requests import Instant, Result, Table
from ledger.core.running import run
from ledger.core.settings import Settings
from ledger.tables.boto import CALL_S_MAX, client_of
from ledger.tables.dynamo import DynamoTable
from service.job_queue import DeadLetter, Enqueue, WorkQueue
from service.thresholds.event_bus import EventBus, NotPublished, Publish

WORKERS = 8
"""Independent programs that a function runs at once."""

Steps = Generator[Any, Any, None]
"""A program of the service."""

STOP_MS = (CALL_S_MAX + 5) * 1_000
"""A function begins no request when less time than this is left: its longest call, and 5 s to
send what is left.
"""


class OutOfTime(Exception):
    """A program stopped between two requests, because its function's time is nearly up.

    What it did stays.
    """


class _Context(Protocol):
    def get_remaining_time_in_millis(self) -> int: ...


def nearly_up(context: _Context) -> Callable[[], bool]:
    """stop() of an invocation: whether too little of its time is left to begin a request."""
    return lambda: context.get_remaining_time_in_millis() < STOP_MS


def in_time(stop: Callable[[], bool], request: Any) -> Generator[Any, Any, Any]:
    """The request, as a step for `through`. Raises OutOfTime before it where stop()."""
    if stop():
        raise OutOfTime
    return (yield request)


class Runtime:
    """Hands each request to the queue, the bus or the table, and runs programs. workers=1: one
    after the other, in this thread."""

    def __init__(
        self,
        table: Table,
        queue: Any = None,
        bus: Any = None,
        *,
        clock: Clock = wall_clock,
        workers: int = WORKERS,
    ) -> None:
        self._table, self._queue, self._bus = table, queue, bus
        self._workers = workers
        self.now: Callable[[], Instant] = instants(clock)

    @classmethod
    def of(cls, settings: Settings, environ: Mapping[str, str]) -> Runtime:
        """DynamoDB and SQS in the Region of `settings`, by LEDGER_WORK_QUEUE_URL and
        LEDGER_WORK_DLQ_URL; EventBridge, if this Region publishes crossings and
        LEDGER_THRESHOLD_BUS names a bus."""
        sqs, events = (
            partial(client_of, service, settings.region) for service in ("sqs", "events")
        )
        queue = WorkQueue(environ["LEDGER_WORK_QUEUE_URL"], sqs, environ.get("LEDGER_WORK_DLQ_URL"))
        name = environ.get("LEDGER_THRESHOLD_BUS") if settings.tells else None
        bus = EventBus(name, events) if name else None
        return cls(DynamoTable.of(settings), queue, bus)

    def answer(self, request: Any, /) -> Any:
        match request:
            case Enqueue() | DeadLetter():
                return self._queue.answer(request)
            case Publish() if self._bus is None:
                raise NotPublished(
                    "There is no event bus. The table keeps the crossing. Set LEDGER_THRESHOLD_BUS."
                )
            case Publish():
                return self._bus.answer(request)
        return self._table.answer(request)

    def run(self, program: Generator[Any, Any, Result]) -> Result:
        return run(program, self, self.now)

    def run_each(self, programs: Iterable[Steps]) -> None:
        """Run independent programs. Raises the error of the first that fails."""
        if self._workers == 1:
            for program in programs:
                self.run(program)
            return
        with ThreadPoolExecutor(self._workers, thread_name_prefix="service") as pool:
            list(pool.map(self.run, programs))
