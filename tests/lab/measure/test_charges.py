"""What requests cost: on a table in memory, and on a client of boto3; the table of both has TWO."""

import json
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from lab.measure.charge import Charge
from lab.measure.meter import Meter, Uncountable
from lab.measure.metered_table import MeteredTable
from ledger.actions import Add
from ledger.conditions import Absent
from ledger.requests import (
    Delete,
    DeleteMany,
    Get,
    GetMany,
    Item,
    Key,
    Pause,
    Put,
    PutMany,
    Query,
    Request,
    Scan,
    Together,
    Transact,
    Update,
)

KEY, OTHER, NEW = (Key("p", sk) for sk in ("s", "t", "new"))  # the first two: 6 bytes


def item(size: int, key: Key = KEY) -> Item:
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}, "b": {"B": bytes(size - 7)}}


def fresh(size: int, key: Key = KEY) -> Put:
    return Put(item(size, key), Absent())


TWO = (item(3000), item(1500, OTHER))
WRITES: list[tuple[str, Request, tuple[int, int]]] = [
    # what it is, on a table that has TWO; write units, and those that replicate
    ("a put costs the larger item", Put(item(100)), (3, 3)),
    ("whichever it is", Put(item(5000)), (5, 5)),
    ("a failed condition is not replicated", fresh(100), (3, 0)),
    ("and costs the larger item", fresh(5000), (5, 0)),
    ("an update costs the whole item", Update(KEY, (Add("n", 1),)), (3, 3)),
    ("of what is not there, the least", Update(NEW, (Add("n", 1),)), (1, 1)),
    ("an update that is refused", Update(KEY, (Add("n", 1),), Absent()), (3, 0)),
    ("a delete", Delete(OTHER), (2, 2)),
    ("of what is not there", Delete(NEW), (1, 1)),
    ("twice in a transaction", Transact((Put(item(1500, NEW)), Delete(OTHER))), (8, 8)),
    ("also where it is cancelled", Transact((fresh(100), Put(item(1500, NEW)))), (10, 0)),
    ("statement by statement, of which one is taken", PutMany((item(100), item(1500, NEW))), (5, 2)),
    ("deletes of what is so, is gone, is not so", DeleteMany((TWO[1], item(9, NEW), item(9))), (6, 3)),
]  # fmt: skip
READS: list[tuple[str, Request, float]] = [
    ("an absent item costs the least", Get(NEW, consistent=False), 0.5),
    ("and twice that when strong", Get(NEW), 1),
    ("item by item", GetMany((KEY, OTHER, NEW)), 3),
    ("once a page", Query("p"), 2),
    ("an empty page", Query("q", consistent=False), 0.5),
    ("each for itself", Together((Get(KEY), Query("p"))), 3),
    ("the table's own work", Scan(), 0),
    ("no request", Pause(1), 0),
]


def test_what_a_request_costs_a_table_in_memory() -> None:
    for what, request, units in WRITES:
        assert charged(request) == Charge(1, 0, *units), what
    for what, request, read in READS:
        assert charged(request) == Charge(2 if "itself" in what else read > 0, read), what
    assert charged(PutMany(tuple(item(9, Key("p", str(n))) for n in range(26)))).requests == 2


def charged(request: Request) -> Charge:
    table = MeteredTable()
    for there in TWO:
        table.answer(Put(there))
    before = table.cost
    table.answer(request)
    return table.cost - before


def client_of(*answers: tuple[int, Any] | Exception) -> Any:
    """A client whose HTTP attempts, two of a call, come to these statuses, bodies and errors without being sent; who
    looks at an item sees that of TWO."""
    coming = iter(answers)

    def answer(request: Any, **_: Any) -> Any:
        if request.headers["X-Amz-Target"].endswith(b".GetItem"):
            key = json.loads(request.body)["Key"]
            found = [{**key, "b": {"S": "x" * len(i["b"]["B"])}} for i in TWO if i["sk"] == key["sk"]]
            end: Any = (200, {"Item": found[0]} if found else {})
        elif isinstance(end := next(coming), Exception):
            raise end
        body = json.dumps(end[1]).encode()
        return AWSResponse("", end[0], HTTPHeaders(), SimpleNamespace(stream=lambda **_: iter([body])))

    config = Config(retries={"mode": "standard", "total_max_attempts": 2})
    made: Any = boto3.Session("a", "a", region_name="eu-west-1").client("dynamodb", config=config)
    made.meta.events.register_first("before-send.dynamodb", answer)
    return made


def failed(code: str, **more: Any) -> tuple[int, Any]:
    return 400, {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", **more}


OF_KEY = {"TableName": "t", "Key": {"pk": {"S": "p"}, "sk": {"S": "s"}}}
INSERT = {"Statement": "INSERT INTO \"t\" VALUE {'pk': ?, 'sk': ?, 'b': ?}", "Parameters": [*item(5000).values()]}
TAKEN, REFUSED = {"Error": {"Code": "DuplicateItem"}}, {"Error": {"Code": "ThrottlingError"}}
CHECKED = {"TransactItems": [
    {"Put": {"TableName": "t", "Item": item(5000)}},
    {"ConditionCheck": {**OF_KEY, "ConditionExpression": "attribute_exists(pk)"}},
]}  # fmt: skip
KEYS = {"Keys": [OF_KEY["Key"]] * 3, "ProjectionExpression": "pk, sk", "ConsistentRead": True}
HALF = {"Responses": {"t": [OF_KEY["Key"]]}, "UnprocessedKeys": {"t": {"Keys": [OF_KEY["Key"]]}}}
CALLS: list[tuple[str, dict[str, Any], tuple[int, Any], Charge]] = [
    ("put_item", {"TableName": "t", "Item": item(100)}, (200, {}), Charge(1, 0, 3, 3)),
    ("put_item", {"TableName": "t", "Item": item(5000)}, failed("ConditionalCheckFailedException"), Charge(1, 0, 5)),
    ("put_item", {"TableName": "t", "Item": item(100)}, failed("AccessDeniedException"), Charge(1)),
    ("update_item", OF_KEY, (200, {}), Charge(1, 0, 3, 3)),
    ("delete_item", OF_KEY, (200, {}), Charge(1, 0, 3, 3)),
    ("batch_execute_statement", {"Statements": [INSERT] * 3}, (200, {"Responses": [{}, TAKEN, REFUSED]}),
     Charge(1, 0, 10, 5)),
    ("transact_write_items", CHECKED, (200, {}), Charge(1, 0, 16, 10)),
    ("transact_write_items", CHECKED, failed("TransactionCanceledException"), Charge(1, 0, 16, 0)),
    ("batch_get_item", {"RequestItems": {"t": KEYS}}, (200, HALF), Charge(1, 2)),
    ("scan", {"TableName": "t", "ProjectionExpression": "pk"}, (200, {"Items": [OF_KEY["Key"]] * 3}), Charge(1, 1.5)),
    ("query", {"TableName": "t", "KeyConditionExpression": "pk = p"}, failed("ThrottlingException"), Charge(2)),
    ("describe_table", {"TableName": "t"}, (200, {}), Charge(1)),
]  # fmt: skip


def test_what_a_client_of_boto3_is_answered_costs_what_it_would_cost_on_aws() -> None:
    for name, arguments, answer, cost in CALLS:
        client, meter = client_of(answer, answer), Meter()
        meter.attach(client)
        try:
            getattr(client, name)(**arguments)
        except ClientError:
            assert answer[0] == 400
        assert meter.total() == cost, (name, answer)


def test_every_attempt_that_was_sent_is_a_request_and_what_cannot_be_counted_is_not_sent() -> None:
    refused, lost = EndpointConnectionError(endpoint_url="here"), ReadTimeoutError(endpoint_url="here")
    client, meter = client_of((500, {}), (200, {}), refused, lost, AssertionError("sent")), Meter()
    for _ in range(2):  # twice counts once
        meter.attach(client)
    client.put_item(TableName="t", Item=item(9, NEW))
    with pytest.raises(ReadTimeoutError):
        client.put_item(TableName="t", Item=item(9, NEW))
    assert meter.total() - Charge(requests=1) == Charge(requests=2, write_units=2, replicated_units=2)
    for name, asked in (
        ("execute_statement", {"Statement": "SELECT * FROM t"}),
        ("query", {"TableName": "t", "FilterExpression": "a = :a"}),
        ("query", {"TableName": "t", "IndexName": "i-i"}),
        ("scan", {"TableName": "t", "Select": "COUNT"}),
        ("batch_execute_statement", {"Statements": [{"Statement": "INSERT INTO t VALUE {'pk': ?}"}]}),
    ):
        with pytest.raises(Uncountable):
            getattr(client, name)(**asked)
