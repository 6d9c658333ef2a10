"""Many lanes through the shipped handlers: what finding their work takes, and what a change costs
over its whole life.

Rule 1: `ring` and `compact` are the handlers that Lambda calls. What hands them their events is
played: a stream with one shard, a queue, a clock.
Rule 2: What came within a second is handed over at its end, in batches as large as the event
sources'.
Rule 3: Figures are of the time after `warm_s`, in which lanes are listed and the first folds are
made. Every change has to be in a sum at the end.
"""

import heapq
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from random import Random
from typing import Any

from lab.measure.figure import Figure
from lab.measure.metered_table import HOME, START_MS, TABLE, MeteredTable, cost
from ledger.core import tokens
from ledger.core.items import delta_item
from ledger.core.requests import Instant, Put
from ledger.core.settings import Settings
from ledger.core.values import Delta, Lane
from reader import Reader
from service.compact.serve import Worker
from service.job_queue import WorkQueue
from service.observe import Watch
from service.ring.ring import Ringer
from service.runtime import Runtime

SECOND_MS, HOUR_S = 1_000, 3_600
RING_BATCH, WORK_BATCH = 1_000, 50
SETTINGS = Settings(table=TABLE, region=HOME)


class Queue:
    """The SQS client of the shipped `WorkQueue`."""

    def __init__(self) -> None:
        self.now_ms, self.sent = START_MS, 0
        self._order = count()
        self._waiting: list[tuple[int, int, str]] = []

    def send_message_batch(
        self, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        self.sent += len(Entries)
        for entry in Entries:
            visible_ms = self.now_ms + entry["DelaySeconds"] * SECOND_MS
            heapq.heappush(self._waiting, (visible_ms, next(self._order), entry["MessageBody"]))
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}

    def batch(self) -> list[dict[str, Any]]:
        """The records of the messages that are visible now, up to WORK_BATCH; they are off the
        queue then.
        """
        bodies: list[str] = []
        while len(bodies) < WORK_BATCH and self._waiting and self._waiting[0][0] <= self.now_ms:
            bodies.append(heapq.heappop(self._waiting)[2])
        attributes = {"ApproximateReceiveCount": "1", "SentTimestamp": str(self.now_ms)}
        given: dict[str, Any] = {
            "eventSource": "aws:sqs",
            "attributes": attributes,
            "messageAttributes": {},
        }
        return [
            {**given, "messageId": str(number), "body": body} for number, body in enumerate(bodies)
        ]


class Lanes:
    """Lanes of counters with one shard, each changed `rate` times a second, at random from a
    seed.
    """

    def __init__(
        self, lanes: int, rate: float, settings: Settings = SETTINGS, seed: int = 1
    ) -> None:
        self._lanes = [Lane(HOME, 0, f"stock:{number:06}") for number in range(lanes)]
        self._per_s, self._drawn = lanes * rate, Random(seed)
        self._queue, self._changes = Queue(), 0
        self._table = MeteredTable()
        runtime = Runtime(self._table, WorkQueue("work", lambda: self._queue), workers=1)
        runtime.now = lambda: Instant(self._queue.now_ms, self._queue.now_ms)
        watch = Watch.here("lanes", io.StringIO())
        self._ringer = Ringer(settings, runtime, watch)
        self._worker = Worker(settings, runtime, watch)
        self._reader = Reader(settings, table=self._table.table, clock=lambda: self._queue.now_ms)

    def play(self, warm_s: int, measured_s: int) -> dict[str, float]:
        """What a change took that was put after the warm-up."""
        self._pass(warm_s)
        before, messages = self._changes, self._queue.sent
        spent = cost(partial(self._pass, measured_s), [self._table])
        values = self._reader.values([lane.counter for lane in self._lanes])
        if sum(values.values()) != self._changes:
            raise AssertionError(
                f"the lanes do not have the {self._changes:,} changes of 1 that were put"
            )
        changes = self._changes - before
        return {
            "messages": (self._queue.sent - messages) / changes,
            "write units": spent.write_units / changes,
            "read units": spent.read_units / changes,
        }

    def _pass(self, seconds: int) -> None:
        for _ in range(seconds):
            self._second()

    def _second(self) -> None:
        began_ms = self._queue.now_ms
        records = [self._put(began_ms, at_ms) for at_ms in self._times()]
        self._queue.now_ms = began_ms + SECOND_MS
        for first in range(0, len(records), RING_BATCH):
            self._check(self._ringer({"Records": records[first : first + RING_BATCH]}))
        while batch := self._queue.batch():
            self._check(self._worker({"Records": batch}, lambda: False))

    def _times(self) -> Iterator[int]:
        """When changes come in this second, in milliseconds after its start."""
        at_s = self._drawn.expovariate(self._per_s)
        while at_s < 1:
            yield int(at_s * SECOND_MS)
            at_s += self._drawn.expovariate(self._per_s)

    def _put(self, began_ms: int, after_ms: int) -> dict[str, Any]:
        """A producer's change of 1, and its record of the stream."""
        self._queue.now_ms = began_ms + after_ms
        token = tokens.make(self._queue.now_ms, self._drawn.randbytes(tokens.RANDOM_BYTES))
        item = delta_item(Delta(self._drawn.choice(self._lanes), token, 1))
        self._table.answer(Put(item))
        self._changes += 1
        keys = {name: item[name] for name in ("pk", "sk")}
        image = {name: value for name, value in item.items() if name not in keys}
        seen = {"Keys": keys, "NewImage": image, "SequenceNumber": "1"}
        return {
            "eventName": "INSERT",
            "dynamodb": {**seen, "ApproximateCreationDateTime": began_ms // SECOND_MS},
        }

    @staticmethod
    def _check(answer: Any) -> None:
        if answer["batchItemFailures"]:
            raise AssertionError(f"{answer} of a queue and a table that never fail")


def at_once(small: bool) -> Iterator[Figure]:
    lanes, seconds = (200, 900) if small else (5_000, 1_200)
    messages = Lanes(lanes, 0.05).play(warm_s=120, measured_s=seconds)["messages"]
    yield Figure(
        f"{lanes:,} lanes, a change every 20 s each: messages a change", messages, 0.05, 0.01
    )


def whole_lives(small: bool) -> Iterator[Figure]:
    """Fewer lanes for long enough that folds and deletes of a whole life are in it."""
    lanes, hours = (10, 4) if small else (100, 6)
    kept = Settings(table=TABLE, region=HOME, clean=False)
    for text, settings, most, least in (
        ("", SETTINGS, 2.2, 1.9),
        (", clean=False", kept, 1.2, 1.05),
    ):
        lived = Lanes(lanes, 0.02, settings).play(warm_s=hours * HOUR_S, measured_s=hours * HOUR_S)
        of = f"{lanes} lanes, a change every 50 s each{text}:"
        yield Figure(f"{of} write units, whole life", lived["write units"], most, least)
        yield Figure(f"{of} read units, whole life", lived["read units"], 0.3, 0.1)


PARTS = (at_once, whole_lives)
