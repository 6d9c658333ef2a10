"""The service without AWS: a queue, metrics and log lines; and the events that Lambda hands over."""

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from ledger import items
from ledger.errors import LedgerError, Unavailable
from ledger.requests import Item
from ledger.values import Delta, Lane
from service.job_queue import DeadLetter, Enqueue, Message
from service.jobs import Job
from service.observe import Watch
from service.runtime import Runtime
from service.thresholds.event_bus import Publish
from tests.world import Region

NOTHING: dict[str, list[Any]] = {"batchItemFailures": []}


def failed(*names: str) -> dict[str, list[Any]]:
    """A partial batch response."""
    return {"batchItemFailures": [{"itemIdentifier": name} for name in names]}


class JobQueue:
    """What was put there: jobs in `sent`, each with its delay, and bodies in `dead`. What it does not confirm, it has
    not: jobs in the lanes in `refused`, and all while it is `down`."""

    def __init__(self) -> None:
        self.sent: list[tuple[Job, int]] = []
        self.dead: list[str] = []
        self.refused: set[Lane] = set()
        self.down = False

    def answer(self, request: Enqueue | DeadLetter) -> Any:
        if isinstance(request, DeadLetter):
            if self.down:
                raise Unavailable("the DLQ does not answer")
            return self.dead.append(request.body)
        return tuple(map(self._put, request.messages))

    def _put(self, message: Message) -> LedgerError | None:
        if self.down or message.job.lane in self.refused:
            return Unavailable("the queue does not answer")
        self.sent.append((message.job, message.delay_s))
        return None


class Bus:
    """The details that were published, in order. Nothing is while it is `down`."""

    def __init__(self) -> None:
        self.details: list[dict[str, Any]] = []
        self.down = False

    def answer(self, request: Publish) -> None:
        if self.down:
            raise Unavailable("the bus does not answer")
        self.details.append(request.detail)


class Notes:
    """Metrics and log lines, as the handlers gave them."""

    def __init__(self) -> None:
        self.metrics: dict[str, float] = {}
        self.lines: list[tuple[str, str, Mapping[str, Any]]] = []

    def add_metric(self, name: str, unit: MetricUnit, value: float) -> None:
        """Fails where a name says another unit."""
        units = {"Ms": MetricUnit.Milliseconds, "Bytes": MetricUnit.Bytes}
        assert unit is next((unit for end, unit in units.items() if name.endswith(end)), MetricUnit.Count), name
        self.metrics[name] = self.metrics.get(name, 0) + value

    def __getattr__(self, level: str) -> Any:
        if level not in ("debug", "info", "warning", "error"):
            raise AttributeError(level)
        return lambda text, extra=None: self.lines.append((level, text, extra or {}))

    def shown(self, *levels: str) -> str:
        return repr([line for line in self.lines if line[0] in levels])


class Service:
    """One Region's table, queue and event bus, and what hands requests to them. `before` sees each request first."""

    def __init__(self, table: Region | None = None) -> None:
        self.table = table or Region()
        self.queue, self.bus, self.notes = JobQueue(), Bus(), Notes()
        self.watch = Watch(self.notes, self.notes)  # type: ignore[arg-type]
        self.before: Callable[[Any], None] = lambda _: None
        self.runtime = Runtime(*(self._See(self, known) for known in (self.table, self.queue, self.bus)), workers=1)
        self.runtime.now = self.table.now

    @property
    def metrics(self) -> dict[str, float]:
        return self.notes.metrics

    def taken(self) -> list[tuple[Job, int]]:
        """What was sent since, with its delays."""
        sent, self.queue.sent = self.queue.sent, []
        return sent

    class _See:
        def __init__(self, service: "Service", known: Any) -> None:
            self._service, self._known = service, known

        def answer(self, request: Any, /) -> Any:
            self._service.before(request)
            return self._known.answer(request)


def stored(item: Item, event: str = "INSERT", sequence: int = 1, made_ms: int | None = None) -> dict[str, Any]:
    """A stream record about an item. As Lambda gives it: bytes in base64, times in seconds, rounded down."""
    change: dict[str, Any] = {"Keys": {"pk": item["pk"], "sk": item["sk"]}, "SequenceNumber": str(sequence)}
    image = {name: {"B": b64encode(held["B"]).decode()} if "B" in held else held for name, held in item.items()}
    change |= {"NewImage": image} if event != "REMOVE" else {"OldImage": image}
    change |= {"ApproximateCreationDateTime": float(made_ms // 1_000)} if made_ms is not None else {}
    return {"eventID": "1", "eventName": event, "eventSource": "aws:dynamodb", "dynamodb": change}


def stream(deltas: Iterable[Delta], made_ms: int | None = None) -> dict[str, Any]:
    """A stream event with the inserts of some deltas, numbered from 1."""
    records = (stored(items.delta_item(each), sequence=n, made_ms=made_ms) for n, each in enumerate(deltas, start=1))
    return {"Records": list(records)}


def sqs(*bodies: str) -> dict[str, Any]:
    """An SQS event with these message bodies, named m1, m2 and so on; its fields are those that AWS documents."""
    source = {"eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:ledger-dev-work"}
    other: dict[str, Any] = {"receiptHandle": "r", "messageAttributes": {}, "md5OfBody": "", "awsRegion": "eu-west-1"}
    other |= {"attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1545082649183"}, **source}
    return {"Records": [{"messageId": f"m{n}", "body": body, **other} for n, body in enumerate(bodies, start=1)]}


def never() -> bool:
    return False
