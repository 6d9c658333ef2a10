"""The designs that the demo runs side by side: ours, and the two that everybody writes first.

Rules: each is called with the same events, Regions and faults; each is written as its author would, with the SDK's
retries; `Unanswered` means that the caller does not know whether the change was applied.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from botocore.exceptions import ClientError, HTTPClientError

from compactor import Compactor, Report
from lab.events import Event
from lab.meters.meter import Meter
from ledger import Ledger, Settings, tokens
from ledger.errors import OutcomeUnknown
from ledger.values import to_ms
from reader import Reader

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

Clients = Mapping[str, "DynamoDBClient"]
MERGE_MAX = 99


class Unanswered(Exception):
    """The request may or may not have been applied."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What a read showed; `count` is None for designs that do not know it."""

    value: int
    count: int | None = None


class Design(Protocol):
    name: str
    table: str
    writes: Meter
    reads: Meter

    def add(self, event: Event, home: str, region: str) -> None:
        """Add an event that was first asked for in `home`, through `region`. Raises Unanswered."""

    def housekeep(self, region: str) -> bool:
        """What the design's scheduled job does, once; whether it did all that it had found to do."""

    def read(self, counter: str, region: str) -> Sight: ...

    def values(self, counters: Sequence[str], region: str) -> dict[str, int]: ...


class Ours:
    """One delta an event; a compactor in each Region. `values` reads through clients of its own, `bulk`."""

    name = "this library"

    def __init__(
        self, settings: Mapping[str, Settings], writers: Clients, readers: Clients, bulk: Clients, compactors: Clients
    ) -> None:
        self.table = next(iter(settings.values())).table
        self.writes, self.reads = _metered(writers, compactors), _metered(readers, bulk)
        self.report = Report()
        self._lock = threading.Lock()
        self._ledgers = {r: Ledger(s, client=writers[r]) for r, s in settings.items()}
        self._readers = {r: Reader(s, ttl=0, client=readers[r]) for r, s in settings.items()}
        self._bulk = {r: Reader(s, ttl=0, client=bulk[r]) for r, s in settings.items()}
        self._compactors = {r: Compactor(s, clients=compactors) for r, s in settings.items()}

    def add(self, event: Event, home: str, region: str) -> None:
        try:
            self._ledgers[region].add(event.counter, event.change, idempotency_key=event.key, at=event.at, region=home)
        except OutcomeUnknown as error:
            raise Unanswered from error

    def housekeep(self, region: str) -> bool:
        report = self._compactors[region].run()
        for error in report.problems.values():
            raise error
        with self._lock:
            self.report = Report.total([self.report, report])
        return not report.gave_up

    def read(self, counter: str, region: str) -> Sight:
        balance = self._readers[region].read(counter)
        return Sight(balance.value, balance.count)

    def values(self, counters: Sequence[str], region: str) -> dict[str, int]:
        return {c: v for part in _parts(counters, 50) for c, v in self._bulk[region].values(part).items()}


class AtomicAdd:
    """One item a counter: UpdateItem ADD. A lost answer is retried by the SDK, and the change counts again."""

    name = "atomic ADD"

    def __init__(self, table: str, writers: Clients, readers: Clients) -> None:
        self.table = table
        self.writes, self.reads = _metered(writers), _metered(readers)
        self._writers, self._readers = writers, readers

    def add(self, event: Event, home: str, region: str) -> None:
        try:
            self._writers[region].update_item(
                TableName=self.table,
                Key=_key(event.counter, "total"),
                UpdateExpression="ADD amount :change",
                ExpressionAttributeValues={":change": {"N": str(event.change)}},
                ReturnValues="ALL_NEW",
            )
        except HTTPClientError as error:
            raise Unanswered from error

    def housekeep(self, region: str) -> bool:
        """Nothing to do."""
        return True

    def read(self, counter: str, region: str) -> Sight:
        answer = self._readers[region].get_item(TableName=self.table, Key=_key(counter, "total"), ConsistentRead=True)
        return Sight(int(answer.get("Item", {}).get("amount", {}).get("N", "0")))

    def values(self, counters: Sequence[str], region: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for part in _parts(counters, 100):
            keys: Any = {"Keys": [_key(counter, "total") for counter in part], "ConsistentRead": True}
            answer = self._readers[region].batch_get_item(RequestItems={self.table: keys})
            found |= {i["pk"]["S"]: int(i["amount"]["N"]) for i in answer["Responses"][self.table]}
        return found


class NaiveMerge:
    """Deltas under the same tokens as ours; a job deletes up to 99 of them and adds their sum in one transaction."""

    name = "naive merge"

    def __init__(self, table: str, writers: Clients, readers: Clients) -> None:
        self.table = table
        self.writes, self.reads = _metered(writers), _metered(readers)
        self._writers, self._readers = writers, readers
        self._touched: dict[str, set[str]] = {region: set() for region in writers}

    def add(self, event: Event, home: str, region: str) -> None:
        token = tokens.keyed(event.counter, event.key, to_ms(event.at))
        try:
            self._writers[region].put_item(
                TableName=self.table,
                Item={**_key(event.counter, token), "amount": {"N": str(event.change)}},
                ConditionExpression="attribute_not_exists(pk)",
            )
        except HTTPClientError as error:
            raise Unanswered from error
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
        for touched in self._touched.values():  # as the stream would tell each Region's job
            touched.add(event.counter)

    def housekeep(self, region: str) -> bool:
        touched, self._touched[region] = self._touched[region], set()
        for counter in list(touched):  # writers may still be adding to it
            items = self._query(self._writers[region], counter)
            deltas = [item for item in items if item["sk"]["S"] != "total"][:MERGE_MAX]
            if len(deltas) < 2:
                continue
            name = {"TableName": self.table}
            actions: list[Any] = [
                {"Delete": {**name, "Key": _key(counter, d["sk"]["S"]), "ConditionExpression": "attribute_exists(pk)"}}
                for d in deltas
            ]
            total = {":sum": {"N": str(sum(int(d["amount"]["N"]) for d in deltas))}}
            update = {"UpdateExpression": "ADD amount :sum", "ExpressionAttributeValues": total}
            actions.append({"Update": {**name, "Key": _key(counter, "total"), **update}})
            try:
                self._writers[region].transact_write_items(TransactItems=actions)
            except ClientError as error:  # a delta went meanwhile: the next run merges the others
                if error.response["Error"]["Code"] != "TransactionCanceledException":
                    raise
        return True

    def read(self, counter: str, region: str) -> Sight:
        return Sight(sum(int(item["amount"]["N"]) for item in self._query(self._readers[region], counter)))

    def values(self, counters: Sequence[str], region: str) -> dict[str, int]:
        return {counter: self.read(counter, region).value for counter in counters}

    def _query(self, client: DynamoDBClient, counter: str) -> list[Any]:
        pages = client.get_paginator("query").paginate(
            TableName=self.table,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": counter}},
            ConsistentRead=True,
        )
        return [item for page in pages for item in page["Items"]]


def _metered(*groups: Clients) -> Meter:
    meter = Meter()
    for clients in groups:
        for client in clients.values():
            meter.attach(client)
    return meter


def _key(pk: str, sk: str) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def _parts(counters: Sequence[str], size: int) -> list[Sequence[str]]:
    return [counters[i : i + size] for i in range(0, len(counters), size)]
