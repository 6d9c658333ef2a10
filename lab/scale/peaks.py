"""How much memory the functions' own objects take at most, whatever comes.

Rule 1: It is the most that a process of its own has had, less what it had when the function was ready: the table and
the queue remember nothing, so what grows is the function's, or the event that it was handed.
Rule 2: What is asked goes by process, because what one has had at most never becomes less.
"""

import multiprocessing
import resource
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, cast

from aws_lambda_powertools.metrics import MetricUnit

from lab.scale.region import RING_BATCH, Nowhere
from ledger import tokens
from ledger.items import delta_item
from ledger.requests import Get, GetMany, Instant, Item, Page, Put, PutMany, Query, Request, Transact
from ledger.settings import Settings
from ledger.values import Delta, Lane
from service.compact.handler import Worker
from service.job_queue import Enqueue
from service.jobs import Look
from service.messages import message_of
from service.observe import Watch
from service.ring.handler import Ringer
from service.runtime import Runtime

SETTINGS = Settings(table="counters", region="eu-west-1")
START_MS = 1_800_000_000_000
PAGE = 8_000
"""Deltas of a page of 1 MB, about."""


class Silent:
    """Metrics that nobody is sent."""

    def add_metric(self, name: str, unit: MetricUnit, value: float) -> None:
        return


class Backlogs:
    """A table whose lanes have so many deltas each, made when they are asked for, and a queue that takes everything."""

    def __init__(self, deltas: int = 0) -> None:
        self._deltas = deltas
        self._folds: dict[str, dict[Any, Item]] = {}

    def answer(self, request: Request | Enqueue) -> Any:
        match request:
            case Enqueue(messages):
                return (None,) * len(messages)
            case GetMany(keys):
                return (None,) * len(keys)
            case PutMany(items):
                return (None,) * len(items)
            case Put():
                return None
            case Get(key):
                return self._folds.get(key.pk, {}).get(key)
            case Query(pk) if pk.startswith("fold#"):
                return Page(tuple(self._folds.get(pk, {}).values()), None)
            case Query(pk, after, _, limit):
                lane = Lane.parse(pk.removeprefix("delta#"))
                first = 0 if after is None else tokens.time_ms(after.rstrip("$")) - START_MS + 1
                last = min(first + min(limit or PAGE, PAGE), self._deltas)
                made = (
                    Delta(lane, tokens.make(START_MS + n, bytes(tokens.RANDOM_BYTES)), 1) for n in range(first, last)
                )
                found = tuple(map(delta_item, made))
                return Page(found, found[-1]["sk"]["S"] if last < self._deltas else None)
            case Transact(writes):
                pk = writes[0].key.pk
                self._folds[pk] = {write.key: write.item for write in writes if isinstance(write, Put)}
                return None
            case _:
                raise TypeError(f"not asked for by what is measured: {request!r}")


def ring_peaks_mb(lanes: Sequence[int]) -> list[float]:
    """Of `ring`, after each of these numbers of lanes rang in one process."""
    return _apart(_ring, lanes)


def compact_peaks_mb(lanes: int, deltas: int) -> list[float]:
    """Of `compact`, in a batch of messages for so many lanes, each with a tail of so many deltas."""
    return _apart(_compact, lanes, deltas)


def _apart(measure: Callable[..., list[float]], *given: Any) -> list[float]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measure, *given).result()


def _had_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def _ring(lanes: Sequence[int]) -> list[float]:
    ringer = Ringer(
        SETTINGS, _runtime(Backlogs(), START_MS), Watch(Watch.here("peak", Nowhere()).logger, cast(Any, Silent()))
    )
    before, found, done = _had_mb(), list[float](), 0
    for most in lanes:
        while done < most:
            ringer({"Records": _records(done)})
            done += RING_BATCH
        found.append(_had_mb() - before)
    return found


def _records(first: int) -> list[dict[str, Any]]:
    """Of packs that cannot be read: each rings, and its lane is remembered as long as a lane is."""
    token = tokens.make(START_MS, bytes(tokens.RANDOM_BYTES))
    return [
        {
            "eventName": "INSERT",
            "dynamodb": {
                "Keys": {"pk": {"S": f"delta#eu-west-1#0#stock:{n:06}"}, "sk": {"S": f"{token}#{n:032}"}},
                "SequenceNumber": str(n),
                "ApproximateCreationDateTime": START_MS // 1_000,
            },
        }
        for n in range(first, first + RING_BATCH)
    ]


def _compact(lanes: int, deltas: int) -> list[float]:
    runtime = _runtime(Backlogs(deltas), START_MS + deltas + SETTINGS.allowed_lateness_ms)
    worker = Worker(SETTINGS, runtime, Watch(Watch.here("peak", Nowhere()).logger, cast(Any, Silent())))
    bodies = [message_of(Look(Lane("eu-west-1", 0, f"stock:{n:06}"))) for n in range(lanes)]
    records = [{"messageId": str(n), "body": body, "eventSource": "aws:sqs"} for n, body in enumerate(bodies)]
    before = _had_mb()
    worker({"Records": records}, lambda: False)
    return [_had_mb() - before]


def _runtime(table: Backlogs, now_ms: int) -> Runtime:
    runtime = Runtime(table, table)
    runtime.now = lambda: Instant(now_ms, now_ms)
    return runtime
