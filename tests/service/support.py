"""The service without AWS: marks in memory, a queue, what was told; and the events that Lambda hands over."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from ledger import items
from ledger.memory import MemoryTable
from ledger.requests import DeleteMany, Get, Item, Put, keyed
from ledger.values import Delta, Lane
from service.marks import Again, Claim, Hold, Mark, Rest, Touch, key_of, mark_of
from service.runtime import Runtime
from service.work import Send, Work
from tests.support import Region


class MemoryMarks:
    """Marks in a MemoryTable, one request each, as test_marks.py demands of every table."""

    def __init__(self, table: MemoryTable) -> None:
        self._table = table

    def answer(self, request: Any, /) -> Any:
        match request:
            case Touch(lane, now_ms, due_ms, late):
                asked = {} if "due_ms" in self._item(lane) else {"due_ms": due_ms}
                self._set(lane, touched_ms=now_ms, **asked, **({"late_ms": now_ms} if late else {}))
            case Claim(seen, held_ms):
                if not self._is(seen.lane, due_ms=seen.due_ms, next_ms=seen.next_ms, held_ms=seen.held_ms):
                    return False
                self._set(seen.lane, held_ms=held_ms)
                return True
            case Rest(lane, touched_ms, next_ms):
                if not self._is(lane, touched_ms=touched_ms):
                    return False
                if next_ms is None:
                    MemoryTable.answer(self._table, DeleteMany((keyed(key_of(lane)),)))
                else:
                    self._set(lane, next_ms=next_ms, due_ms=None, held_ms=None, late_ms=None)
                return True
            case Again(lane, due_ms, next_ms):
                self._set(lane, due_ms=due_ms, next_ms=next_ms, held_ms=None)
            case Hold(lane, held_ms):
                self._set(lane, held_ms=held_ms, **({} if "due_ms" in self._item(lane) else {"due_ms": held_ms}))
            case _:
                raise TypeError(request)
        return None

    def _is(self, lane: Lane, **seen: int | None) -> bool:
        item = self._item(lane)
        return all(item.get(name) == (None if value is None else {"N": str(value)}) for name, value in seen.items())

    def _item(self, lane: Lane) -> Item:
        return MemoryTable.answer(self._table, Get(key_of(lane))) or {}

    def mark(self, lane: Lane) -> Mark | None:
        item = self._item(lane)
        return mark_of(item) if item else None

    def _set(self, lane: Lane, **changed: int | None) -> None:
        key = key_of(lane)
        item = dict(self._item(lane))
        item |= {"pk": {"S": key.pk}, "sk": {"S": key.sk}}
        for name, value in changed.items():
            item.pop(name, None)
            if value is not None:
                item[name] = {"N": str(value)}
        MemoryTable.answer(self._table, Put(item))


class Queue:
    """What was sent; `refuses` says for how many messages it does not answer."""

    def __init__(self) -> None:
        self.sent: list[Work] = []
        self.refused: set[Lane] = set()

    def answer(self, request: Send) -> tuple[Work, ...]:
        self.sent += [work for work in request.messages if work.lane not in self.refused]
        return tuple(work for work in request.messages if work.lane in self.refused)


class Told:
    """Metrics and log lines, as the handlers gave them."""

    def __init__(self) -> None:
        self.metrics: dict[str, float] = {}
        self.lines: list[tuple[str, str, Mapping[str, Any]]] = []

    def add_metric(self, name: str, unit: MetricUnit, value: float) -> None:
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
    """One Region's table, marks and queue, and the world that hands requests to them."""

    def __init__(self, table: Region) -> None:
        self.table = table
        self.marks = MemoryMarks(table)
        self.queue = Queue()
        self.told = Told()
        self.runtime = Runtime(table, self.marks, self.queue, clock=lambda: table.now_ms, workers=1)


def stored(item: Item, event: str = "INSERT", sequence: int = 1, made_ms: int | None = None) -> dict[str, Any]:
    """A stream record about an item."""
    change: dict[str, Any] = {"Keys": {"pk": item["pk"], "sk": item["sk"]}, "SequenceNumber": str(sequence)}
    change |= {"NewImage": item} if event != "REMOVE" else {"OldImage": item}
    change |= {"ApproximateCreationDateTime": made_ms / 1_000} if made_ms is not None else {}
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
