"""A meter on a boto3 DynamoDB client: what its requests would cost on AWS, whatever engine answers them.

Rule 1: Every HTTP attempt that reached the engine is a request, botocore's own retries too: the hook is
`response-received`, which fires once per attempt. An attempt that never got a connection is none; one whose answer was
lost is.
Rule 2: Costs are by `charge.py`, not by ConsumedCapacity, from the items before and after a write: the meter looks at
them through the same client. So nobody else may change these items at that moment.
Rule 3: A request whose cost its answer would not tell is refused before it is sent (`Uncountable`), never guessed.
Rule 4: One meter may serve many clients and threads.
"""

import threading
from collections.abc import Mapping
from functools import partial
from typing import Any

from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError, ProxyConnectionError, SSLError
from mypy_boto3_dynamodb import DynamoDBClient

from lab.engines.partiql import request_of
from lab.measure.charge import Charge, of_items, of_write
from ledger.cost import item_bytes

Fields = Mapping[str, Any]
NEVER_SENT = (ConnectTimeoutError, EndpointConnectionError, ProxyConnectionError, SSLError)
NOT_COUNTED = {"BatchWriteItem", "ExecuteStatement", "ExecuteTransaction", "TransactGetItems"}
HIDES_SIZES = {"FilterExpression", "IndexName", "QueryFilter", "ScanFilter"}
SINGLE_WRITES = ("PutItem", "UpdateItem", "DeleteItem")
LISTS = ("BatchExecuteStatement", "BatchGetItem", "TransactWriteItems")
"""The operations whose answers have a list of what they consumed."""

FAILED = {"ConditionalCheckFailedException", "ConditionalCheckFailed", "DuplicateItem", "TransactionCanceledException"}
"""The errors of a condition, which cost what the write would have."""


class Uncountable(ValueError):
    """No rule tells what this request would cost. Nothing was sent: ask in a form the meter knows, or add the rule."""


class Meter:
    """Counts requests, read units and write units.

    `key` names the key attributes of the tables; a table that has only the first of them is fine. `reports`: answers
    have the meter's units as what they consumed, as DynamoDB's have where a request asks for it; an error has none.
    The engines here report something else. Raises `Uncountable` out of a client's method, before anything is sent.
    """

    def __init__(self, key: tuple[str, ...] = ("pk", "sk"), *, reports: bool = False) -> None:
        self._key, self._reports = key, reports
        self._lock, self._here = threading.Lock(), threading.local()
        self._cost = Charge()
        self._mark = f"meter-{id(self)}"  # where this meter keeps what it needs in botocore's context of a request

    def attach(self, client: DynamoDBClient) -> None:
        """Count this client's requests from now on; attaching twice counts once."""
        events = client.meta.events
        before, after = partial(self._before, client), partial(self._after, client)
        events.register_last("before-parameter-build.dynamodb", before, unique_id=f"{self._mark}-before")
        events.register_first("response-received.dynamodb", after, unique_id=f"{self._mark}-after")

    def total(self) -> Charge:
        """The cost so far of everything; subtract an earlier total for the cost of what was done between."""
        with self._lock:
            return self._cost

    def _before(self, client: Any, params: Fields, model: Any, context: dict[str, Any], **_: Any) -> None:
        if getattr(self._here, "looks", False):
            return
        if model.name in NOT_COUNTED or HIDES_SIZES & params.keys() or params.get("Select") == "COUNT":
            raise Uncountable(f"{model.name} with {sorted(params)}")
        writes = [(kind, action, self._size(client, action)) for kind, action in _writes(model.name, params)]
        context[self._mark] = params, writes

    def _after(
        self, client: Any, event_name: str, context: Any, parsed_response: Any, exception: Exception | None, **_: Any
    ) -> None:
        if self._mark not in context or isinstance(exception, NEVER_SENT):
            return
        operation, (params, writes) = event_name.rpartition(".")[2], context[self._mark]
        answer, cost = parsed_response or {}, Charge(requests=1)
        if _error(answer) in ("", *FAILED):
            answers = answer.get("Responses") if operation == "BatchExecuteStatement" else None
            for (kind, action, size), end in zip(writes, answers or [answer] * len(writes), strict=True):
                cost += self._written(client, operation, kind, action, size, _error(end))
            cost += self._read(client, operation, params, answer)
        with self._lock:
            self._cost += cost
        if self._reports and parsed_response is not None:
            parsed_response.pop("ConsumedCapacity", None)
            if "Error" not in answer and params.get("ReturnConsumedCapacity", "NONE") != "NONE":
                parsed_response["ConsumedCapacity"] = _consumed(operation, cost)

    def _written(self, client: Any, operation: str, kind: str, action: Fields, size: int, error: str) -> Charge:
        if error not in ("", *FAILED):
            return Charge()
        applied, after = not error and kind != "ConditionCheck", size
        if kind == "Put":
            after = item_bytes(action["Item"])
        elif applied:
            after = self._size(client, action)
        return of_write(size, after, applied=applied, transactional=operation == "TransactWriteItems")

    def _read(self, client: Any, operation: str, request: Fields, answer: Fields) -> Charge:
        ((table, asked),) = request.get("RequestItems", {request.get("TableName"): request}).items()

        def bytes_of(item: Fields) -> int:
            """A part of an item costs the whole."""
            if "ProjectionExpression" not in asked:
                return item_bytes(item)
            return self._size(client, {"TableName": table, "Item": {**asked.get("Key", {}), **item}})

        match operation:
            case "GetItem":
                sizes = [bytes_of(answer.get("Item", {}))]
            case "Query" | "Scan":
                sizes = [sum(map(bytes_of, answer.get("Items", ())))]
            case "BatchGetItem":
                sizes = [*map(bytes_of, answer.get("Responses", {}).get(table, ()))]
                unprocessed = answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", ())
                sizes += [0] * (len(asked["Keys"]) - len(unprocessed) - len(sizes))
            case _:
                return Charge()
        return of_items(sizes, consistent=asked.get("ConsistentRead", False))

    def _size(self, client: Any, action: Fields) -> int:
        """The bytes of an item as it stands now."""
        given = action.get("Key") or action["Item"]
        key = {name: given[name] for name in self._key if name in given}
        self._here.looks = True
        try:
            return item_bytes(
                client.get_item(TableName=action["TableName"], Key=key, ConsistentRead=True).get("Item", {})
            )
        finally:
            self._here.looks = False


def _writes(operation: str, request: Fields) -> list[tuple[str, Fields]]:
    if operation in SINGLE_WRITES:
        return [(operation.removesuffix("Item"), request)]
    found = [(kind, action) for entry in request.get("TransactItems", ()) for kind, action in entry.items()]
    for statement in request.get("Statements", ()):
        try:
            name, action = request_of(statement)
        except ValueError as error:
            raise Uncountable(statement["Statement"]) from error
        found.append((name.removesuffix("Item"), action))
    return found


def _error(answer: Fields) -> str:
    """The error code of an answer or of a statement's response; empty if it succeeded."""
    return str(answer.get("Error", {}).get("Code", ""))


def _consumed(operation: str, charge: Charge) -> Any:
    units = {"ReadCapacityUnits": charge.read_units, "WriteCapacityUnits": float(charge.write_units)}
    consumed = {"TableName": "counters", "CapacityUnits": sum(units.values())}
    if operation == "TransactWriteItems":
        consumed |= {name: amount for name, amount in units.items() if amount}
    return [consumed] if operation in LISTS else consumed
