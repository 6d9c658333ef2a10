"""What each operation costs, from hand-made requests and answers."""

from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError
from mypy_boto3_dynamodb import DynamoDBClient

from lab.measure.charge import Charge
from lab.measure.charges import Uncountable, charge, refuse_uncountable
from lab.measure.item_sizes import ItemSizes
from lab.measure.meter import Meter

Fields = dict[str, Any]

KEY, OTHER, ABSENT = ({"pk": {"S": "p"}, "sk": {"S": sk}} for sk in ("s", "t", "absent"))  # the first two: 6 bytes
OF_KEY: Fields = {"TableName": "t", "Key": KEY}
STRONG = {"ConsistentRead": True}
REFUSED, THROTTLED, BROKEN, TAKEN = (
    {"Error": {"Code": code}}
    for code in ("ConditionalCheckFailedException", "ThrottlingException", "InternalServerError", "DuplicateItem")
)


def item(size: int, key: Fields = KEY) -> Fields:
    return {**key, "b": {"B": bytes(size - 7)}}


def put(size: int) -> Fields:
    return {"TableName": "t", "Item": item(size)}


def seen(*items: Fields) -> ItemSizes:
    memory = ItemSizes()
    for each in items:
        memory.put("t", each)
    return memory


def transaction(token: str = "token") -> Fields:
    actions = [{"Put": put(1500)}, {"ConditionCheck": {"TableName": "t", "Key": OTHER}}]
    return {"TransactItems": actions, "ClientRequestToken": token}


CANCELLED = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": [{"Code": "None"}] * 2}
INSERT = {"Statement": "INSERT INTO \"t\" VALUE {'pk': ?, 'sk': ?, 'b': ?}", "Parameters": list(item(1500).values())}
INSERTED = {"Responses": [{"TableName": "t"}, TAKEN, THROTTLED]}
VALUES = {":zero": {"N": "0"}, ":b": {"B": bytes(50)}, ":if": {"S": "x" * 100}}
SET = {
    **OF_KEY,
    "UpdateExpression": "SET #n = if_not_exists(#n, :zero), blob = :b",
    "ExpressionAttributeNames": {"#n": "total", "#unused": "x" * 100},
    "ExpressionAttributeValues": VALUES,
}
ADD_TO_SET = {
    **OF_KEY,
    "UpdateExpression": "SET b = :b ADD ids :more DELETE others :gone",
    "ExpressionAttributeValues": {
        ":b": {"S": "x"},
        ":more": {"SS": ["x" * 20, "y" * 10]},
        ":gone": {"SS": ["z" * 90]},
    },
}
RETURNED = {**OF_KEY, "UpdateExpression": "REMOVE b", "ReturnValues": "ALL_NEW"}
WANTED = {"RequestItems": {"t": {"Keys": [KEY, OTHER, ABSENT], **STRONG}}}
FOUND = {"Responses": {"t": [item(1536), item(6656, OTHER)]}}
HALF = {"Responses": {"t": [item(100)]}, "UnprocessedKeys": {"t": {"Keys": [OTHER]}}}
TWO: Fields = {"RequestItems": {"t": {"Keys": [KEY, OTHER]}}}

WRITES: list[tuple[str, str, Fields, Fields | None, list[Fields], int, int, int | None]] = [
    # what it is, operation, request, answer, items there before; write units, those that replicate, bytes of the item
    ("a put costs the larger item", "PutItem", put(100), {}, [item(3000)], 3, 3, 100),
    ("whichever it is", "PutItem", put(3000), {}, [item(100)], 3, 3, 3000),
    ("and counts where its answer was lost", "PutItem", put(3000), None, [], 3, 3, 3000),
    ("a failed condition is not replicated", "PutItem", put(100), REFUSED, [item(3000)], 3, 0, 3000),
    ("and costs the larger item", "PutItem", put(3000), REFUSED, [item(100)], 3, 0, 100),
    ("and shows it", "PutItem", put(100), {**REFUSED, "Item": item(3000)}, [], 3, 0, 3000),
    ("an update costs the whole item", "UpdateItem", ADD_TO_SET, {}, [item(3000)], 3, 3, 3030),
    ("an item is as large as what was set", "UpdateItem", SET, {}, [], 1, 1, 6 + (5 + 21) + (4 + 50)),
    ("a set grows by what is added to it", "UpdateItem", ADD_TO_SET, {}, [item(1000)], 2, 2, 1030),
    ("what is returned is exact", "UpdateItem", RETURNED, {"Attributes": item(2000)}, [item(100)], 2, 2, 2000),
    ("a delete leaves nothing", "DeleteItem", OF_KEY, {}, [item(1600)], 2, 2, 0),
    ("statement by statement", "BatchExecuteStatement", {"Statements": [INSERT] * 3}, INSERTED, [], 4, 2, None),
    ("of which one is taken", "BatchExecuteStatement", {"Statements": [INSERT]}, {"Responses": [TAKEN]},
     [item(3000)], 3, 0, 3000),
    ("twice, checks not replicated", "TransactWriteItems", transaction(), {}, [], 6, 4, 1500),
    ("also when it is cancelled", "TransactWriteItems", transaction(), CANCELLED, [], 6, 0, 0),
    ("throttled", "TransactWriteItems", transaction(), THROTTLED, [], 0, 0, 0),
    ("throttled", "PutItem", put(100), THROTTLED, [], 0, 0, 0),
    ("broken", "PutItem", put(100), BROKEN, [], 0, 0, 0),
    ("on a table", "DescribeTable", {"TableName": "t"}, {}, [], 0, 0, None),
]  # fmt: skip
READS: list[tuple[str, str, Fields, Fields, list[Fields], float]] = [
    ("an absent item costs the least", "GetItem", OF_KEY, {}, [item(9000)], 0.5),
    ("and twice that when strong", "GetItem", {**OF_KEY, **STRONG}, {}, [], 1),
    ("a part costs the whole", "GetItem", {**OF_KEY, **STRONG, "ProjectionExpression": "a"}, {"Item": KEY},
     [item(9000)], 3),
    ("item by item", "BatchGetItem", WANTED, FOUND, [], 1 + 2 + 1),
    ("but not unprocessed", "BatchGetItem", TWO, HALF, [], 0.5),
    ("once a page", "Query", {"TableName": "t", **STRONG}, {"Items": [item(1500), item(1500, OTHER)]}, [], 1),
    ("an empty page", "Query", {"TableName": "t"}, {"Items": []}, [], 0.5),
    ("a scan of keys costs the whole items", "Scan", {"TableName": "t", "ProjectionExpression": "pk, sk"},
     {"Items": [KEY, OTHER]}, [item(5000), item(100, OTHER)], 1),
    ("throttled", "Query", {}, THROTTLED, [], 0),
]  # fmt: skip


def test_what_a_request_costs_and_how_large_it_leaves_the_item() -> None:
    for what, operation, request, answer, there, units, replicated, size in WRITES:
        memory = seen(*there)
        cost = charge(operation, request, answer, memory)
        assert cost == Charge(requests=1, write_units=units, replicated_units=replicated), what
        assert size is None or memory.size("t", KEY) == size, what
    for what, operation, request, answer, there, read in READS:
        assert charge(operation, request, answer, seen(*there)) == Charge(requests=1, read_units=read), what


def test_a_transaction_repeated_with_its_token_only_reads() -> None:
    memory = ItemSizes()
    costs = [charge("TransactWriteItems", transaction(token), {}, memory) for token in ("one", "one", "another")]
    assert [(cost.read_units, cost.write_units) for cost in costs] == [(0, 6), (4, 0), (0, 6)]


def test_a_request_whose_cost_its_answer_would_not_show_is_refused() -> None:
    appends = {"UpdateExpression": "SET a = list_append(a, :a)"}
    for operation, request in (
        ("ExecuteStatement", {"Statement": "SELECT * FROM t"}),
        ("BatchWriteItem", {"RequestItems": {}}),
        ("Query", {"FilterExpression": "a = :a"}),
        ("Query", {"IndexName": "i"}),
        ("Scan", {"Select": "COUNT"}),
        ("UpdateItem", appends),
        ("TransactWriteItems", {"TransactItems": [{"Update": appends}]}),
        ("BatchExecuteStatement", {"Statements": [{"Statement": "INSERT INTO t VALUE {'pk': ?}"}]}),
    ):
        with pytest.raises(Uncountable):
            refuse_uncountable(operation, request)


def client_of(*answers: int | Exception) -> DynamoDBClient:
    """A client whose HTTP attempts, two of a call, come to these statuses and errors without being sent."""
    coming = iter(answers)

    def answer(**_: Any) -> Any:
        if isinstance(end := next(coming), Exception):
            raise end
        return AWSResponse("", end, HTTPHeaders(), SimpleNamespace(stream=lambda **_: iter([b"{}"])))

    config = Config(retries={"mode": "standard", "total_max_attempts": 2})
    made: DynamoDBClient = boto3.Session("a", "a", region_name="eu-west-1").client("dynamodb", config=config)
    made.meta.events.register_first("before-send.dynamodb", answer)
    return made


def test_every_attempt_that_was_sent_is_a_request_and_what_cannot_be_counted_is_not_sent() -> None:
    refused, lost = EndpointConnectionError(endpoint_url="here"), ReadTimeoutError(endpoint_url="here")
    client, meter = client_of(500, 200, refused, lost, AssertionError("sent")), Meter()
    for _ in range(2):  # twice counts once
        meter.attach(client)
    client.put_item(TableName="t", Item=KEY)
    with pytest.raises(ReadTimeoutError):
        client.put_item(TableName="t", Item=KEY)
    with pytest.raises(Uncountable):
        client.scan(TableName="t", Select="COUNT")
    assert meter.total() - Charge(requests=1) == Charge(requests=2, write_units=2, replicated_units=2)
