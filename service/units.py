"""The capacity that a process has consumed, as DynamoDB itself says: asked for on every request, added up, told.

Rules: the hooks add one parameter and read one field; they change nothing else. A request that failed says nothing, so
the sums are a little low.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.metrics import MetricUnit

from ledger.client import make_client
from ledger.settings import Settings
from service.observe import READ_UNITS, WRITE_UNITS, Metered

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

READS = {"GetItem", "BatchGetItem", "Query", "Scan"}


class Units:
    """Adds up what the clients it is attached to consume. Thread-safe; attaching twice counts once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read = self._write = 0.0

    def attach(self, client: DynamoDBClient) -> None:
        events = client.meta.events
        events.register("provide-client-params.dynamodb", _ask, unique_id="ledger-units-ask")
        events.register("after-call.dynamodb", self._after, unique_id="ledger-units-after")

    def tell(self, metrics: Metered) -> None:
        """What was consumed since it was told last."""
        with self._lock:
            read, write, self._read, self._write = self._read, self._write, 0.0, 0.0
        metrics.add_metric(READ_UNITS, MetricUnit.Count, read)
        metrics.add_metric(WRITE_UNITS, MetricUnit.Count, write)

    def _after(self, parsed: Any, model: Any, **_: Any) -> None:
        consumed: Any = parsed.get("ConsumedCapacity") or []
        parts: list[Any] = consumed if isinstance(consumed, list) else [consumed]  # a list for batches, transactions
        units = sum(part.get("CapacityUnits", 0.0) for part in parts)
        with self._lock:
            if model.name in READS:
                self._read += units
            else:
                self._write += units


def units_of(settings: Settings) -> Units:
    """Attached to this process's client of every Region: clean asks the others."""
    units = Units()
    for region in settings.regions:
        units.attach(make_client(region, settings.endpoint_url))
    return units


def _ask(params: dict[str, Any], model: Any, **_: Any) -> None:
    if model.input_shape is not None and "ReturnConsumedCapacity" in model.input_shape.members:
        params["ReturnConsumedCapacity"] = "TOTAL"
