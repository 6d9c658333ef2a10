"""A Region with the shipped functions `ring`, `compact` and `sweep`, fed from a simulated stream, queue and schedule.

Rule 1: The functions are the handlers that Lambda calls. What is simulated is what hands them their events: a stream of
some shards, each with one process (ParallelizationFactor 1), a queue, a schedule, a clock.
Rule 2: What came within a second is handed over at its end, in batches as large as the event sources'. The stream's
time of a record is rounded down to the second, as DynamoDB does.
Rule 3: A process lives for PROCESS_MS; then another, which remembers nothing, takes its place.
Rule 4: CPU is of the functions' own code: what the table takes to answer is not in it, and there is no boto3.
Rule 5: A visit takes no time of the simulated clock, so nothing that a visit rests on gets old while it runs.
"""

import base64
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from time import process_time
from typing import Any, cast
from zlib import crc32

from aws_lambda_powertools.metrics import MetricUnit

from lab.scale.lean import LeanTable
from lab.scale.work_queue import Sqs
from ledger.items import delta_pk, pack_item
from ledger.requests import Instant, Put
from ledger.settings import Settings
from ledger.values import Lane, Pack
from service.compact.handler import Worker
from service.job_queue import WorkQueue
from service.observe import Watch
from service.ring.handler import Ringer
from service.runtime import Runtime
from service.sweep.handler import Sweeper

RING_BATCH, WORK_BATCH = 1_000, 50
SWEEP_MS, SWEEP_HOURS, VERIFY_ONE_IN = 900_000, 24.0, 100
"""As in serverless.yml: what event sources hand over at most, and the sweep's schedule."""

PROCESS_MS = 2 * 3_600_000
SECOND_MS = 1_000

Came = tuple[int, Lane, str | Pack]
"""When something is put, in which lane, and what: the token of a delta of 1, or a pack."""


class Counted:
    """What the functions told as metrics: the sum of each."""

    def __init__(self) -> None:
        self.sums: Counter[str] = Counter()

    def add_metric(self, name: str, unit: MetricUnit, value: float) -> None:
        self.sums[name] += int(value)


class Nowhere(io.StringIO):
    """Takes the log's lines, which are made as in Lambda."""

    def write(self, text: str, /) -> int:
        return len(text)


class Region:
    """cpu_s and calls are by function. changes: put so far. sweeps: whether the schedule of `sweep` is on."""

    def __init__(
        self, settings: Settings, start_ms: int, *, shards: int = 1, table: LeanTable | None = None, sweeps: bool = True
    ) -> None:
        self.settings, self.now_ms = settings, start_ms
        self.table = table or LeanTable()
        self.sqs = Sqs(lambda: self.now_ms)
        self.metrics = Counted()
        self.cpu_s: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.changes = 0
        self._pending: list[list[Any]] = [[] for _ in range(shards)]
        self._watch = Watch(Watch.here("scale", Nowhere()).logger, cast(Any, self.metrics))
        self._next_sweep_ms = start_ms if sweeps else None
        self._born_ms, self._picked = start_ms, count(1)
        self._coming: Iterator[Came] = iter(())
        self._came: Came | None = None
        self._begin()

    def feed(self, arrivals: Iterable[Came]) -> None:
        """What is to come, in the order of its times."""
        self._coming = iter(arrivals)
        self._came = next(self._coming, None)

    def _begin(self) -> None:
        """New processes."""
        runtime = Runtime(self.table, WorkQueue("work", self.sqs), workers=1)
        runtime.now = lambda: Instant(self.now_ms, self.now_ms)
        parts = self.settings, runtime, self._watch
        self.ringers = [Ringer(*parts) for _ in self._pending]
        self.worker = Worker(*parts)
        self.sweeper = Sweeper(*parts, verify_one_in=VERIFY_ONE_IN, draw=self._draw, hours=SWEEP_HOURS)
        self._born_ms = self.now_ms

    def _draw(self) -> float:
        """Every hundredth lane is verified, where the shipped function draws."""
        return next(self._picked) % VERIFY_ONE_IN / VERIFY_ONE_IN

    def run(self, until_ms: int) -> None:
        """Put what comes, and let the functions do what is to be done, until then."""
        while True:
            due = [self._came[0] if self._came else None, self.sqs.next_ms, self._next_sweep_ms]
            next_ms = max(self.now_ms, min((ms for ms in due if ms is not None), default=until_ms))
            if next_ms >= until_ms:
                self.now_ms = until_ms
                return
            end_ms = next_ms // SECOND_MS * SECOND_MS + SECOND_MS
            while self._came and self._came[0] < end_ms:
                self.now_ms = max(self.now_ms, self._came[0])
                self._put(*self._came[1:])
                self._came = next(self._coming, None)
            self.now_ms = end_ms
            self._hand_over()

    def _put(self, lane: Lane, what: str | Pack) -> None:
        pk = delta_pk(lane)
        self.table.payer = "put"
        if isinstance(what, Pack):
            item = pack_item(what)
            self.table.answer(Put(item))
            self.changes += len(what.entries)
            image = {"entries": {"B": base64.b64encode(what.entries.data).decode()}}
            sk = what.name
        else:
            self.table.put(pk, what, "1")
            self.changes += 1
            image, sk = {"change": {"N": "1"}}, what
        change = {
            "Keys": {"pk": {"S": pk}, "sk": {"S": sk}},
            "NewImage": image,
            "SequenceNumber": "1",
            "ApproximateCreationDateTime": self.now_ms // SECOND_MS,
        }
        self._pending[crc32(pk.encode()) % len(self._pending)].append({"eventName": "INSERT", "dynamodb": change})

    def _hand_over(self) -> None:
        if self.now_ms - self._born_ms >= PROCESS_MS:
            self._begin()
        for ringer, records in zip(self.ringers, self._pending, strict=True):
            for start in range(0, len(records), RING_BATCH):
                failed = self.call("ring", ringer, {"Records": records[start : start + RING_BATCH]})
                if failed["batchItemFailures"]:
                    raise AssertionError(f"{failed} of a queue and a table that never fail")
            records.clear()
        if self._next_sweep_ms is not None and self.now_ms >= self._next_sweep_ms:
            self._next_sweep_ms += SWEEP_MS
            self.call("sweep", self.sweeper, lambda: False)
        while (event := self.sqs.batch(WORK_BATCH))["Records"]:
            failed = self.call("compact", self.worker, event, lambda: False)
            if failed["batchItemFailures"]:
                raise AssertionError(f"{failed} of a queue and a table that never fail")

    def call(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """A function, with its CPU and its units to its name."""
        self.table.payer = name
        before_s = self.table.cpu_s
        began = process_time()
        answer = function(*arguments)
        spent_s = process_time() - began - (self.table.cpu_s - before_s)
        self.cpu_s[name] += spent_s  # type: ignore[assignment]
        self.calls[name] += 1
        return answer
