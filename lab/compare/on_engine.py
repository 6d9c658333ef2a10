"""The same in one Region of a real engine: writers at once, answers that are lost on the way back, a ceiling.

Rules: the caller is that of stage.py, except that what is not answered is delivered again after all others and not
after a minute: the clock that all share leaps. Answers are lost by torture's proxy, which hangs up once the engine has
answered; there all is done one after another, so that a seed decides which. Elsewhere threads decide.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from lab.compare.events import CEILING, EVENTS, Counted, Limit, Record
from lab.compare.scenarios import EU, MINUTE_MS
from lab.compare.stage import A_MINUTE, CALM_MINUTES, DELIVERIES_MAX, C
from lab.designs.approach import Approach
from lab.designs.table import config, table_of
from lab.engines import proxy
from lab.engines.crew import CONTEXT, Crew
from lab.engines.faults import Fault
from lab.engines.ministack import Engine
from ledger.errors import GaveUp, LedgerError, TableError
from ledger.requests import Instant, Program, Result, run

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

LOST = {Fault("answer dropped after it applied", answer="reset"): 0.1}
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class _Message:
    number: int
    at_ms: int
    deliveries: int = 1


def at_once(engine: Engine, approach: Approach) -> Counted:
    """A_MINUTE writers, the housekeeping and a reader at once; no faults."""
    counter = _Counter(engine, approach, approach.claims.units)
    counter.play(A_MINUTE + 2)
    return counter.record.ended([counter.value()])


def answers_lost(engine: Engine, approach: Approach, seed: int) -> Counted:
    """One after another; the answer to one request in ten is lost."""
    with _losing_answers(engine, seed) as endpoint:
        counter = _Counter(engine, approach, approach.claims.units, endpoint)
        counter.play(1)
        return counter.record.ended([counter.value()])


def limit(engine: Engine, approach: Approach) -> Limit | None:
    """A_MINUTE writers at once under a ceiling; None: it has no limits."""
    if approach.claims.limit == "none":
        return None
    limited: Any = approach
    counter = _Counter(engine, replace(limited, ceiling=CEILING), units=True)
    counter.play(A_MINUTE + 2)
    return counter.record.limit([counter.value()])


class _Counter:
    """One counter in a new table. Until the end all ask `endpoint`, then the engine itself."""

    def __init__(self, engine: Engine, approach: Approach, units: bool, endpoint: str | None = None) -> None:
        self.record = Record(units)
        self._approach = approach.of(EU, (EU,))
        self._ahead_ms = 0
        self._unanswered: list[_Message] = []
        name = f"accuracy-{next(_numbers)}"
        direct = _client(engine.endpoint_url, approach.sdk_attempts)
        engine.create_table(name, EU, direct)
        client = _client(endpoint, approach.sdk_attempts) if endpoint else direct
        self._direct, self._table = (table_of(name, each) for each in (direct, client))

    def play(self, at_once: int) -> None:
        """Ask for EVENTS events, A_MINUTE of them a minute; so many requests at once."""
        with ThreadPoolExecutor(at_once) as pool:
            for start in range(0, EVENTS, A_MINUTE):
                numbers = range(start, min(start + A_MINUTE, EVENTS))
                self._minute(pool, [_Message(number, self._now().wall_ms) for number in numbers])
            while self._unanswered:
                self._minute(pool)
            self._table = self._direct
            for _ in range(CALM_MINUTES):
                self._minute(pool)

    def value(self) -> int:
        return self._run(self._approach.value(C))

    def _minute(self, pool: ThreadPoolExecutor, messages: Sequence[_Message] = ()) -> None:
        """Deliver these and what was not answered the minute before, and do what is done every minute."""
        due, self._unanswered = [*messages, *self._unanswered], []
        deliveries = [partial(self._deliver, message) for message in due]
        works: list[Callable[[], None]] = [self._housekeep, *deliveries, self._read]
        for done in [pool.submit(work) for work in works]:
            done.result()
        self._ahead_ms += MINUTE_MS

    def _deliver(self, message: _Message) -> None:
        number = message.number
        self.record.asked.add(number)
        try:
            add = self._approach.add(C, self.record.change(number), f"event-{number}", message.at_ms)
            self.record.answered(number, EU, self._run(add))
        except LedgerError:
            if message.deliveries < DELIVERIES_MAX:
                self._unanswered.append(replace(message, deliveries=message.deliveries + 1))

    def _housekeep(self) -> None:
        with contextlib.suppress(TableError, GaveUp):
            self._run(self._approach.housekeep(C, EU))

    def _read(self) -> None:
        must = frozenset(self.record.acknowledged.get(EU, ()))
        with contextlib.suppress(TableError):
            self.record.saw(self.value(), must)

    def _run(self, program: Program[Result]) -> Result:
        return run(program, self._table, self._now)

    def _now(self) -> Instant:
        now_ms = time.time_ns() // 1_000_000 + self._ahead_ms
        return Instant(now_ms, now_ms)


@contextlib.contextmanager
def _losing_answers(engine: Engine, seed: int) -> Iterator[str]:
    """An endpoint before the engine's that loses the answers to LOST of the requests."""
    with Crew() as crew:
        control, theirs = CONTEXT.Pipe()
        crew.start("proxy", proxy.main, int(engine.endpoint_url.rpartition(":")[2]), seed, LOST, theirs, False)
        yield f"http://{proxy.HOST}:{control.recv()}/{EU}"


_session = cache(boto3.session.Session)  # it loads the models of the service once


def _client(endpoint: str, attempts: int) -> DynamoDBClient:
    return _session().client(
        "dynamodb",
        region_name=EU,
        endpoint_url=endpoint,
        aws_access_key_id="embedded",
        aws_secret_access_key="embedded",
        config=config(attempts).merge(Config(proxies={})),
    )
