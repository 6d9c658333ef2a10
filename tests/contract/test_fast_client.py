"""Each operation of FastClient beside boto3's, on one table: the same answers and errors."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lab.smoke.visit import visit_of
from ledger.tables.fast import OPERATIONS, FastClient
from tests.contract.conftest import HOME, OF_A_RUN, SMOKE, emptied, fast_client

KEY = {"pk": {"S": "delta#c#0#eu-west-1"}, "sk": {"S": "01KB"}}
OTHER = KEY | {"sk": {"S": "ü 😀"}}
ITEM = KEY | {"n": {"N": "1"}, "b": {"B": b"\x00\xff"}, "m": {"M": {"x": {"NULL": True}}}}
ABSENT = {
    "ConditionExpression": "attribute_not_exists(pk)",
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
}
CHANGED = {"UpdateExpression": "ADD n :n", "ExpressionAttributeValues": {":n": {"N": "2"}}}
QUERY = {
    "KeyConditionExpression": "pk = :pk",
    "ExpressionAttributeValues": {":pk": KEY["pk"]},
    "ConsistentRead": True,
}


def calls(table: str) -> list[tuple[str, dict[str, Any]]]:
    """Each operation, and refusals of those that may be refused."""
    of = {"TableName": table, "ReturnConsumedCapacity": "TOTAL"}
    insert = f"INSERT INTO \"{table}\" VALUE {{'pk': ?, 'sk': ?, 'b': ?}}"
    statement = {"Statement": insert, "Parameters": [*OTHER.values(), ITEM["b"]]}
    put = {"Put": {"TableName": table, "Item": OTHER} | ABSENT}
    update = {"Update": {"TableName": table, "Key": KEY} | CHANGED}
    return [
        ("get_item", of | {"Key": KEY}),
        ("put_item", of | {"Item": ITEM} | ABSENT),
        ("put_item", of | {"Item": ITEM} | ABSENT),
        ("get_item", of | {"Key": KEY, "ConsistentRead": True}),
        ("update_item", of | {"Key": KEY, "ReturnValues": "ALL_NEW"} | CHANGED),
        ("update_item", of | {"Key": KEY} | CHANGED | ABSENT),
        ("execute_statement", statement | {"ReturnConsumedCapacity": "TOTAL"}),
        ("execute_statement", statement),
        ("batch_execute_statement", {"Statements": [statement, statement]}),
        ("batch_get_item", {"RequestItems": {table: {"Keys": [KEY, OTHER]}}}),
        ("query", of | QUERY),
        ("scan", of | {"ConsistentRead": True}),
        ("transact_write_items", {"TransactItems": [update, put]}),
        ("delete_item", of | {"Key": OTHER, "ReturnValues": "ALL_OLD"}),
        ("transact_write_items", {"TransactItems": [update, put]}),
        ("put_item", of | {"Item": {"pk": {"S": "no sort key"}}}),
        ("get_item", of | {"TableName": f"{table}-lacks", "Key": KEY}),
        ("delete_item", of | {"Key": KEY}),
        ("delete_item", of | {"Key": OTHER}),
    ]


def end(client: Any, operation: str, arguments: dict[str, Any]) -> object:
    """What a call returns or raises, but for its headers."""
    try:
        answer = getattr(client, operation)(**arguments)
        return {**answer, "ResponseMetadata": answer["ResponseMetadata"]["HTTPStatusCode"]}
    except ClientError as error:
        return type(error).__name__, str(error), {**error.response, "ResponseMetadata": None}


@pytest.fixture(params=OF_A_RUN or ["engine", "dynamodb_local"])
def both(
    request: pytest.FixtureRequest, table_names: Iterator[str]
) -> Iterator[tuple[Any, Any, str]]:
    """boto3's client, FastClient, and the table that both see."""
    if request.param in OF_A_RUN:
        visit = visit_of(SMOKE)
        theirs, ours, name = emptied(visit), FastClient(visit.regions[0]), visit.table
    else:
        engine, name = request.getfixturevalue(request.param), next(table_names)
        engine.create_table(name, HOME)
        theirs, ours = engine.client(HOME), fast_client(engine, HOME)
    yield theirs, ours, name
    ours.close()


@pytest.mark.shows(35)
def test_fast_client_ends_each_call_as_boto3_does(both: tuple[Any, Any, str]) -> None:
    theirs, ours, table = both
    asked = calls(table)
    assert {operation for operation, _ in asked} == OPERATIONS
    expected = [end(theirs, *call) for call in asked]
    assert sum(isinstance(each, tuple) for each in expected) >= 5  # refused
    for call, each in zip(asked, expected, strict=True):
        assert end(ours, *call) == each, call
