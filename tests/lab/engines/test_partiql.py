"""A batch of PartiQL as requests of one item each, and their answers as the batch's."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lab.engines import partiql
from lab.engines.ministack import Engine
from ledger.requests import AlreadyThere, DeleteMany, Get, Key, PutMany
from ledger.table import DynamoTable

A = "eu-west-1"
INSERT = {
    "Statement": "INSERT INTO \"t\" VALUE {'pk': ?, 'sk': ?}",
    "Parameters": [{"S": "p"}, {"S": "s"}],
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
}
DELETE = {
    "Statement": 'DELETE FROM "t" WHERE "pk" = ? AND "sk" = ? AND "change" = ?',
    "Parameters": [{"S": "p"}, {"S": "s"}, {"N": "7"}],
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
}


def asked(*statements: Any) -> list[tuple[str, Any]]:
    body = json.dumps({"Statements": statements}).encode()
    return [(operation, json.loads(request)) for operation, request in partiql.requests_of(body)]


def test_an_insert_becomes_a_put_that_replaces_nothing() -> None:
    put = {
        "TableName": "t",
        "Item": {"pk": {"S": "p"}, "sk": {"S": "s"}},
        "ConditionExpression": "attribute_not_exists(pk)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    assert asked(INSERT) == [("PutItem", put)]


def test_a_delete_becomes_one_of_an_item_that_is_as_given_or_gone() -> None:
    delete = {
        "TableName": "t",
        "Key": {"pk": {"S": "p"}, "sk": {"S": "s"}},
        "ConditionExpression": "attribute_not_exists(pk) OR (#a0 = :a0)",
        "ExpressionAttributeNames": {"#a0": "change"},
        "ExpressionAttributeValues": {":a0": {"N": "7"}},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    assert asked(DELETE, INSERT)[0] == ("DeleteItem", delete)


def test_the_answers_become_the_answer_to_a_batch() -> None:
    there = json.dumps({"__type": "x#ConditionalCheckFailedException", "message": "no", "Item": {"pk": {"S": "p"}}})
    slow = json.dumps({"__type": "x#ThrottlingException", "message": "slow"})
    failed = (400, there.encode())
    answers = [
        ("PutItem", (200, b"{}")),
        ("PutItem", failed),
        ("DeleteItem", failed),
        ("PutItem", (400, slow.encode())),
    ]
    done, met, other, throttled = json.loads(partiql.answer_of(answers))["Responses"]
    assert (done, met["Error"]["Code"], met["Error"]["Item"]) == ({}, "DuplicateItem", {"pk": {"S": "p"}})
    assert (other["Error"]["Code"], throttled["Error"]["Code"]) == ("ConditionalCheckFailed", "Throttling")


def test_any_other_statement_is_refused() -> None:
    with pytest.raises(ValueError, match="neither an INSERT nor a DELETE"):
        asked(INSERT | {"Statement": "SELECT * FROM t"})


def test_a_client_that_sends_item_by_item_answers_as_one_that_sends_batches(
    engine: Engine, table_names: Iterator[str]
) -> None:
    name = next(table_names)
    engine.create_table(name, A)
    client = engine.client(A)
    partiql.send_item_by_item(client, through=engine.client(A))
    table = DynamoTable(name, A, lambda _: client)

    def item(sk: str, change: int) -> dict[str, Any]:
        return {"pk": {"S": "p"}, "sk": {"S": sk}, "change": {"N": str(change)}}

    assert table.answer(PutMany((item("a", 1), item("b", 1)))) == (None, None)
    assert table.answer(PutMany((item("a", 2), item("c", 1)))) == (AlreadyThere(item("a", 1)), None)
    deletes = DeleteMany((item("a", 1), item("b", 2), item("x", 1)))
    assert table.answer(deletes) == (None, AlreadyThere(item("b", 1)), None)
    assert [table.answer(Get(Key("p", sk))) for sk in "abc"] == [None, item("b", 1), item("c", 1)]
    client.close()
