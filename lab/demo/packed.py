"""This library behind a queue: many changes a message, added in packs by the function's own handler.

Rule 1: One thread a Region carries: what was asked for since it last looked goes into messages of many changes, and
what is in the queue is added, as Lambda would hand it over.
Rule 2: A change is acknowledged when its message leaves the queue: nobody waits for it, and `done` is called later.
Rule 3: Now and then the function dies after its work, before its messages are deleted: they come again, in other packs.
"""

import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from io import StringIO
from typing import Any

from aws_lambda_powertools.metrics import EphemeralMetrics
from mypy_boto3_sqs.client import SQSClient

from lab.demo.runners import Clients, Ours
from lab.events import Event
from ledger import Change, Ledger, Settings
from ledger.errors import LedgerError
from ledger.queue import ChangeQueue
from service.add_from_queue.handler import AddFromQueue
from service.observe import DELTAS_ACCEPTED, Watch

CARRY_EVERY_S = 1.0
DIES_ONE_IN = 10
VISIBILITY_S = 2

Done = Callable[[], None]


class Sums(EphemeralMetrics):
    """The metrics of a run, summed."""

    def __init__(self) -> None:
        super().__init__(namespace="demo")
        self.sums: Counter[str] = Counter()

    def add_metric(self, name: str, unit: Any, value: float, resolution: Any = 60) -> None:
        self.sums[name] += int(value)


class Packed(Ours):
    """Deltas and packs, one function and one compactor in each Region."""

    name = "in packs"

    def __init__(
        self,
        settings: Mapping[str, Settings],
        writers: Clients,
        readers: Clients,
        compactors: Clients,
        queues: Mapping[str, SQSClient],
        seed: int,
    ) -> None:
        super().__init__(settings, writers, readers, readers, compactors)
        self._sqs = queues
        self._urls = {region: self._create(region) for region in queues}
        self._producers = {region: ChangeQueue(self._urls[region], client=sqs) for region, sqs in queues.items()}
        self._metrics = Sums()
        watch = Watch(Watch.here("demo", StringIO()).logger, self._metrics)
        self._functions = {
            region: AddFromQueue(Ledger(each, client=writers[region]), watch, pack=True)
            for region, each in settings.items()
        }
        self._rng = random.Random(seed)
        self._asked: dict[str, list[tuple[Change, Done]]] = defaultdict(list)
        self._carried: dict[str, dict[str, list[Done]]] = {region: {} for region in queues}
        self._asking = threading.Lock()

    def add(self, event: Event, home: str, region: str, done: Done) -> None:
        change = Change(event.counter, event.change, event.key, event.at, home)
        with self._asking:
            self._asked[region].append((change, done))

    def carry_until(self, region: str, over: threading.Event) -> None:
        """Carries every second; when it is over, until nothing is left. Raises LedgerError."""
        while not over.is_set() or self._asked[region] or self._carried[region]:
            time.sleep(CARRY_EVERY_S)
            self._send(region)
            self._receive(region)

    @property
    def accepted(self) -> int:
        """How many changes went into packs."""
        return self._metrics.sums[DELTAS_ACCEPTED]

    def _create(self, region: str) -> str:
        attributes = {"VisibilityTimeout": str(VISIBILITY_S)}
        return self._sqs[region].create_queue(QueueName=self.table, Attributes=attributes)["QueueUrl"]  # type: ignore[arg-type]

    def _send(self, region: str) -> None:
        with self._asking:
            asked, self._asked[region] = self._asked[region], []
        sent = self._producers[region].send_many(change for change, _ in asked)
        for (_, done), message_id in zip(asked, sent, strict=True):
            if isinstance(message_id, LedgerError):
                raise message_id
            self._carried[region].setdefault(message_id, []).append(done)

    def _receive(self, region: str) -> None:
        sqs, url = self._sqs[region], self._urls[region]
        messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        if not messages:
            return
        records = [
            {"messageId": message["MessageId"], "body": message["Body"], "eventSource": "aws:sqs"}
            for message in messages
        ]
        answer = self._functions[region]({"Records": records})
        if self._rng.randrange(DIES_ONE_IN) == 0:
            return
        failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        for message in messages:
            if message["MessageId"] not in failed:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                for done in self._carried[region].pop(message["MessageId"], []):
                    done()
