"""A meter on a boto3 DynamoDB client: what its requests would cost on AWS, whatever engine answers them.

Rule 1: Every HTTP attempt that reached the engine is a request, botocore's own retries too: the hook is
`response-received`, which fires once per attempt. An attempt that never got a connection is none; one whose answer was
lost is.
Rule 2: Costs are by `charges.py`, not by ConsumedCapacity. The hooks change neither requests nor answers.
Rule 3: One meter may serve many clients and threads. Two engines or two unrelated tables of one name need two meters.
"""

import threading
from typing import Any

from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError, ProxyConnectionError, SSLError
from mypy_boto3_dynamodb import DynamoDBClient

from lab.measure.charge import Charge
from lab.measure.charges import charge, refuse_uncountable
from lab.measure.item_sizes import Fields, ItemSizes

NEVER_SENT = (ConnectTimeoutError, EndpointConnectionError, ProxyConnectionError, SSLError)


class Meter:
    """Counts requests, read units and write units.

    `key` names the key attributes of the tables; a table that has only the first of them is fine. Raises `Uncountable`
    out of a client's method, before anything is sent, for requests whose cost cannot be known: filters, indexes,
    counts, batches of writes, and PartiQL other than what this library sends.
    """

    def __init__(self, key: tuple[str, ...] = ("pk", "sk")) -> None:
        self._lock = threading.Lock()
        self._seen, self._cost = ItemSizes(key), Charge()
        self._mark = f"meter-{id(self)}"  # where this meter keeps the request in botocore's context of it

    def attach(self, client: DynamoDBClient) -> None:
        """Count this client's requests from now on; attaching twice counts once."""
        events = client.meta.events
        events.register_last("before-parameter-build.dynamodb", self._before, unique_id=f"{self._mark}-before")
        events.register_first("response-received.dynamodb", self._after, unique_id=f"{self._mark}-after")

    def total(self) -> Charge:
        """The cost so far of everything; subtract an earlier total for the cost of what was done between."""
        with self._lock:
            return self._cost

    def _before(self, params: Fields, model: Any, context: dict[str, Any], **_: Any) -> None:
        refuse_uncountable(model.name, params)
        context[self._mark] = params

    def _after(
        self, event_name: str, context: dict[str, Any], parsed_response: Any, exception: Exception | None, **_: Any
    ) -> None:
        if isinstance(exception, NEVER_SENT):
            return
        operation, request = event_name.rpartition(".")[2], context[self._mark]
        with self._lock:
            cost = charge(operation, request, parsed_response, self._seen)
            self._cost += cost
        if parsed_response is not None:
            self._report(operation, request, parsed_response, cost)

    def _report(self, operation: str, request: Fields, answer: Any, charge: Charge) -> None:
        """For a meter that does more with a request than to count it."""


LISTS = {"BatchExecuteStatement", "BatchGetItem", "TransactWriteItems"}
"""The operations whose answers have a list of what they consumed."""


class ReportingMeter(Meter):
    """Its clients' answers have the meter's units as what they consumed, as DynamoDB's have where a request asks for it
    (ReturnConsumedCapacity); an error has none. The engines here report something else."""

    def _report(self, operation: str, request: Fields, answer: Any, charge: Charge) -> None:
        answer.pop("ConsumedCapacity", None)
        if "Error" not in answer and request.get("ReturnConsumedCapacity", "NONE") != "NONE":
            units = {"ReadCapacityUnits": charge.read_units, "WriteCapacityUnits": float(charge.write_units)}
            consumed = {"TableName": "counters", "CapacityUnits": sum(units.values())}
            if operation == "TransactWriteItems":
                consumed |= {name: amount for name, amount in units.items() if amount}
            answer["ConsumedCapacity"] = [consumed] if operation in LISTS else consumed
