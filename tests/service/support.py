"""The service without AWS: a queue, what was told; and the events that Lambda hands over."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from ledger import items
from ledger.errors import LedgerError, Unavailable
from ledger.requests import Item
from ledger.values import Delta, Lane
from service.runtime import Runtime
from service.work import Bury, Message, Send, Work
from tests.support import Region
from thresholds import Tell


class Queue:
    """What was put there: messages in `sent`, each with its delay, and in `buried`. What it does not confirm, it has
    not: messages about the lanes in `refused`, and all while it is `down`."""

    def __init__(self) -> None:
        self.sent: list[tuple[Work, int]] = []
        self.buried: list[str] = []
        self.refused: set[Lane] = set()
        self.down = False

    def answer(self, request: Send | Bury) -> Any:
        if isinstance(request, Bury):
            if self.down:
                raise Unavailable("the DLQ does not answer")
            return self.buried.append(request.body)
        return tuple(map(self._put, request.messages))

    def _put(self, message: Message) -> LedgerError | None:
        if self.down or message.work.lane in self.refused:
            return Unavailable("the queue does not answer")
        self.sent.append((message.work, message.delay_s))
        return None


class Bus:
    """The ids that were told, in order. Nothing is told while it is `down`."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.down = False

    def answer(self, request: Tell) -> None:
        if self.down:
            raise Unavailable("the bus does not answer")
        self.ids.append(request.crossing.event(request.table)["id"])


class Told:
    """Metrics and log lines, as the handlers gave them."""

    def __init__(self) -> None:
        self.metrics: dict[str, float] = {}
        self.lines: list[tuple[str, str, Mapping[str, Any]]] = []

    def add_metric(self, name: str, unit: MetricUnit, value: float) -> None:
        """Fails where a name says another unit."""
        said = {"Ms": MetricUnit.Milliseconds, "Bytes": MetricUnit.Bytes}
        assert unit is next((each for end, each in said.items() if name.endswith(end)), MetricUnit.Count), name
        self.metrics[name] = self.metrics.get(name, 0) + value

    def line(self, level: str) -> Any:
        def write(text: str, extra: Mapping[str, Any] | None = None) -> None:
            self.lines.append((level, text, extra or {}))

        return write

    def __getattr__(self, level: str) -> Any:
        if level in ("debug", "info", "warning", "error"):
            return self.line(level)
        raise AttributeError(level)

    def shown(self, *levels: str) -> str:
        return repr([line for line in self.lines if line[0] in levels])


class Service:
    """One Region's table, queue and event bus, and what hands requests to them. `before` sees each request first."""

    def __init__(self, table: Region) -> None:
        self.table = table
        self.queue = Queue()
        self.bus = Bus()
        self.told = Told()
        self.before: Callable[[Any], None] = lambda _: None
        self.runtime = Runtime(
            self._See(self, table), self._See(self, self.queue), self._See(self, self.bus), workers=1
        )
        self.runtime.now = table.now

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


def work(lane: Lane, **more: Any) -> str:
    return json.dumps({"lane": str(lane), **more})


def never() -> bool:
    return False
