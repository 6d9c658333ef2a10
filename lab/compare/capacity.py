"""What the engine itself says that requests consumed, to hold the meter against.

Rules: only what was answered without an error is told by an engine, so only what has no failures can be compared; the
meter stays the measure, because engines differ from AWS where `DIFFERENCES` says so.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

OPERATIONS = {
    *("GetItem", "BatchGetItem", "Query", "Scan"),
    *("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"),
}

DIFFERENCES = {
    "BatchGetItem": "DynamoDB Local: a key that is not there costs nothing",
    "Query": "DynamoDB Local: a page without items costs nothing",
    "Scan": "DynamoDB Local: a page without items costs nothing",
    "TransactWriteItems": "DynamoDB Local: items of as many units are counted once",
    "UpdateItem": "the meter: a number that is changed has 21 bytes",
}
"""Where an engine differs from AWS's rules, or the meter knows less than the engine."""


class Capacity:
    """The ConsumedCapacity of a client's requests, by operation."""

    def __init__(self, client: DynamoDBClient) -> None:
        self.units: Counter[str] = Counter()
        self._lock = threading.Lock()
        for operation in OPERATIONS:
            client.meta.events.register(f"before-parameter-build.dynamodb.{operation}", self._ask)
            client.meta.events.register(f"response-received.dynamodb.{operation}", self._told)

    def _ask(self, params: dict[str, Any], **_: Any) -> None:
        params["ReturnConsumedCapacity"] = "TOTAL"

    def _told(self, event_name: str, parsed_response: Mapping[str, Any] | None = None, **_: Any) -> None:
        told = (parsed_response or {}).get("ConsumedCapacity", [])  # MiniStack tells nothing of a BatchGetItem
        with self._lock:
            for each in told if isinstance(told, list) else [told]:
                self.units[event_name.rpartition(".")[2]] += each["CapacityUnits"]
