"""What boto3 clients consume, as DynamoDB itself says: asked for on every request, and added up.

Rule 1: The hooks add one parameter and read one field.
Rule 2: They change nothing else. A request that failed says nothing, and neither does one of an engine that does not
tell: `untold` counts the latter, so that nobody takes a sum for the whole.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

READS = {"GetItem", "BatchGetItem", "Query", "Scan"}
ASK = "ReturnConsumedCapacity"


class Consumption(NamedTuple):
    """Requests answered, what they consumed, and how many of them did not say."""

    requests: int = 0
    read_units: float = 0.0
    write_units: float = 0.0
    untold: int = 0

    def __add__(self, other: object) -> Consumption:
        if not isinstance(other, Consumption):
            return NotImplemented
        return Consumption(*(a + b for a, b in zip(self, other, strict=True)))  # type: ignore[arg-type]


class Consumed:
    """Adds up what the clients it is attached to consume. Thread-safe; attaching twice counts once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sum = Consumption()

    def attach(self, client: DynamoDBClient) -> None:
        events = client.meta.events
        events.register("provide-client-params.dynamodb", _ask, unique_id="ledger-units-ask")
        events.register("after-call.dynamodb", self._after, unique_id="ledger-units-after")

    def take(self) -> Consumption:
        """What was consumed since it was taken last."""
        with self._lock:
            taken, self._sum = self._sum, Consumption()
        return taken

    def _after(self, http_response: Any, parsed: Any, model: Any, **_: Any) -> None:
        if http_response.status_code >= 300 or not _tells(model):
            return
        consumed: Any = parsed.get("ConsumedCapacity") or []
        parts: list[Any] = consumed if isinstance(consumed, list) else [consumed]  # a list for batches, transactions
        units = sum(part.get("CapacityUnits", 0.0) for part in parts)
        read, write = (units, 0.0) if model.name in READS else (0.0, units)
        with self._lock:
            self._sum += Consumption(1, read, write, untold=0 if parts else 1)


def _ask(params: dict[str, Any], model: Any, **_: Any) -> None:
    if _tells(model):
        params[ASK] = "TOTAL"


def _tells(model: Any) -> bool:
    return model.input_shape is not None and ASK in model.input_shape.members
