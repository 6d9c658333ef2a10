"""What each operation costs, from hand-made requests and answers."""

from typing import Any

import pytest

from lab.meters.charges import Uncountable, charge, refuse_uncountable
from lab.meters.item_sizes import ItemSizes
from ledger.units import Cost

KEY = {"pk": {"S": "p"}, "sk": {"S": "s"}}  # 6 bytes
OTHER = {"pk": {"S": "p"}, "sk": {"S": "t"}}
CONDITION_FAILED = {"Error": {"Code": "ConditionalCheckFailedException"}}
CANCELLED = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": [{"Code": "None"}] * 2}


def item(size: int, key: dict[str, Any] = KEY) -> dict[str, Any]:
    return {**key, "b": {"B": bytes(size - 7)}}


def put(size: int, **extra: Any) -> dict[str, Any]:
    return {"TableName": "t", "Item": item(size), **extra}


def seen(*items: dict[str, Any]) -> ItemSizes:
    memory = ItemSizes()
    for each in items:
        memory.put("t", each)
    return memory


def writes(units: int, replicated: int | None = None) -> Cost:
    return Cost(requests=1, write_units=units, replicated_units=units if replicated is None else replicated)


def reads(units: float) -> Cost:
    return Cost(requests=1, read_units=units)


def test_a_put_costs_the_larger_of_old_and_new() -> None:
    assert charge("PutItem", put(100), {}, seen(item(3000))) == writes(3)
    assert charge("PutItem", put(3000), {}, seen(item(100))) == writes(3)


def test_a_put_is_remembered() -> None:
    memory = ItemSizes()
    charge("PutItem", put(3000), {}, memory)
    assert memory.size("t", KEY) == 3000


def test_a_failed_condition_costs_the_larger_item_and_is_not_replicated() -> None:
    assert charge("PutItem", put(100), CONDITION_FAILED, seen(item(3000))) == writes(3, replicated=0)
    assert charge("PutItem", put(3000), CONDITION_FAILED, seen(item(100))) == writes(3, replicated=0)


def test_a_failed_condition_says_how_large_the_item_is() -> None:
    answer = {**CONDITION_FAILED, "Item": item(3000)}
    assert charge("PutItem", put(100), answer, ItemSizes()) == writes(3, replicated=0)


@pytest.mark.parametrize("code", ["ThrottlingException", "InternalServerError", "ValidationException"])
def test_a_refused_request_costs_no_units(code: str) -> None:
    assert charge("PutItem", put(100), {"Error": {"Code": code}}, ItemSizes()) == writes(0)


@pytest.mark.parametrize("operation", ["GetItem", "BatchGetItem", "Query", "BatchWriteItem", "BatchExecuteStatement"])
def test_a_throttled_request_costs_no_units(operation: str) -> None:
    throttled = {"Error": {"Code": "ThrottlingException"}}
    assert charge(operation, {}, throttled, ItemSizes()) == Cost(requests=1)
    assert charge("TransactWriteItems", transaction(), throttled, ItemSizes()) == Cost(requests=1)


def test_a_put_whose_answer_was_lost_is_charged_and_remembered() -> None:
    memory = ItemSizes()
    assert charge("PutItem", put(3000), None, memory) == writes(3)
    assert memory.size("t", KEY) == 3000


def test_a_delete_costs_the_deleted_item() -> None:
    memory = seen(item(1600))
    request = {"TableName": "t", "Key": KEY}
    assert charge("DeleteItem", request, {}, memory) == writes(2)
    assert charge("DeleteItem", request, {}, memory) == writes(1)


def test_an_add_to_a_large_item_costs_the_whole_item() -> None:
    request = {
        "TableName": "t",
        "Key": KEY,
        "UpdateExpression": "ADD #n :d",
        "ExpressionAttributeNames": {"#n": "total"},
        "ExpressionAttributeValues": {":d": {"N": "1"}},
    }
    assert charge("UpdateItem", request, {}, seen(item(3000))) == writes(3)


def test_an_updated_item_is_as_large_as_what_was_set() -> None:
    memory = ItemSizes()
    request = {
        "TableName": "t",
        "Key": KEY,
        "UpdateExpression": "SET #n = if_not_exists(#n, :zero), blob = :b",
        "ExpressionAttributeNames": {"#n": "total", "#unused": "x" * 100},
        "ExpressionAttributeValues": {":zero": {"N": "0"}, ":b": {"B": bytes(50)}, ":if": {"S": "x" * 100}},
    }
    charge("UpdateItem", request, {}, memory)
    assert memory.size("t", KEY) == 6 + (5 + 21) + (4 + 50)


def test_a_set_grows_by_the_elements_that_are_added_to_it() -> None:
    memory = seen(item(1000))
    request = {
        "TableName": "t",
        "Key": KEY,
        "UpdateExpression": "SET b = :b ADD #ids :more, n :n DELETE others :gone",
        "ExpressionAttributeNames": {"#ids": "ids"},
        "ExpressionAttributeValues": {
            ":b": {"S": "x"},
            ":more": {"SS": ["x" * 20, "y" * 10]},
            ":n": {"N": "1"},
            ":gone": {"SS": ["z" * 90]},
        },
    }
    assert charge("UpdateItem", request, {}, memory) == writes(2)
    assert memory.size("t", KEY) == 1030


def test_an_update_that_returns_the_new_item_is_exact() -> None:
    memory = ItemSizes()
    request = {"TableName": "t", "Key": KEY, "UpdateExpression": "REMOVE b", "ReturnValues": "ALL_NEW"}
    charge("UpdateItem", request, {"Attributes": item(2000)}, memory)
    assert memory.size("t", KEY) == 2000


INSERT = {"Statement": "INSERT INTO \"t\" VALUE {'pk': ?, 'sk': ?, 'b': ?}", "Parameters": list(item(1500).values())}


def test_a_batch_of_inserts_is_charged_statement_by_statement() -> None:
    again = {"Error": {"Code": "DuplicateItem"}}
    throttled = {"Error": {"Code": "ThrottlingError"}}
    answer = {"Responses": [{"TableName": "t"}, again, throttled]}
    assert charge("BatchExecuteStatement", {"Statements": [INSERT] * 3}, answer, ItemSizes()) == writes(4, replicated=2)


def test_a_batch_of_deletes_rounds_up_item_by_item() -> None:
    deletes = [{"DeleteRequest": {"Key": key}} for key in (KEY, OTHER)]
    request = {"RequestItems": {"t": deletes}}
    assert charge("BatchWriteItem", request, {}, seen(item(500), item(3584, OTHER))) == writes(1 + 4)


def test_an_unprocessed_write_costs_nothing() -> None:
    deletes = [{"DeleteRequest": {"Key": key}} for key in (KEY, OTHER)]
    answer = {"UnprocessedItems": {"t": deletes[1:]}}
    assert charge("BatchWriteItem", {"RequestItems": {"t": deletes}}, answer, seen(item(500))) == writes(1)


def transaction(token: str = "token") -> dict[str, Any]:
    actions = [{"Put": put(1500)}, {"ConditionCheck": {"TableName": "t", "Key": OTHER}}]
    return {"TransactItems": actions, "ClientRequestToken": token}


def test_a_transaction_costs_twice_and_a_check_is_not_replicated() -> None:
    assert charge("TransactWriteItems", transaction(), {}, ItemSizes()) == writes(2 * 2 + 2, replicated=4)


def test_a_cancelled_transaction_costs_as_much_and_writes_nothing() -> None:
    memory = ItemSizes()
    assert charge("TransactWriteItems", transaction(), CANCELLED, memory) == writes(6, replicated=0)
    assert memory.size("t", KEY) == 0


def test_a_transaction_repeated_with_its_token_only_reads() -> None:
    memory = ItemSizes()
    charge("TransactWriteItems", transaction(), {}, memory)
    assert charge("TransactWriteItems", transaction(), {}, memory) == reads(2 + 2)
    assert charge("TransactWriteItems", transaction("another"), {}, memory) == writes(6, replicated=4)


def test_a_get_of_an_absent_item_costs_the_least_there_is() -> None:
    request = {"TableName": "t", "Key": KEY}
    assert charge("GetItem", request, {}, seen(item(9000))) == reads(0.5)
    assert charge("GetItem", {**request, "ConsistentRead": True}, {}, ItemSizes()) == reads(1)


def test_a_projected_get_costs_the_whole_item() -> None:
    request = {"TableName": "t", "Key": KEY, "ProjectionExpression": "a", "ConsistentRead": True}
    assert charge("GetItem", request, {"Item": {"a": {"N": "1"}}}, seen(item(9000))) == reads(3)


def test_a_batch_get_rounds_up_item_by_item() -> None:
    third = {"pk": {"S": "p"}, "sk": {"S": "absent"}}
    wanted = {"Keys": [KEY, OTHER, third], "ConsistentRead": True}
    answer = {"Responses": {"t": [item(1536), item(6656, OTHER)]}}
    assert charge("BatchGetItem", {"RequestItems": {"t": wanted}}, answer, ItemSizes()) == reads(1 + 2 + 1)


def test_an_unprocessed_key_costs_nothing() -> None:
    answer = {"Responses": {"t": [item(100)]}, "UnprocessedKeys": {"t": {"Keys": [OTHER]}}}
    assert charge("BatchGetItem", {"RequestItems": {"t": {"Keys": [KEY, OTHER]}}}, answer, ItemSizes()) == reads(0.5)


def test_a_query_rounds_up_once_for_the_page() -> None:
    answer = {"Items": [item(1500), item(1500, OTHER)]}
    assert charge("Query", {"TableName": "t", "ConsistentRead": True}, answer, ItemSizes()) == reads(1)
    assert charge("Query", {"TableName": "t"}, {"Items": []}, ItemSizes()) == reads(0.5)


def test_a_projected_scan_costs_the_whole_items() -> None:
    request = {"TableName": "t", "ProjectionExpression": "pk, sk"}
    assert charge("Scan", request, {"Items": [KEY, OTHER]}, seen(item(5000), item(100, OTHER))) == reads(1)


def test_an_operation_on_a_table_costs_no_units() -> None:
    assert charge("DescribeTable", {"TableName": "t"}, {}, ItemSizes()) == Cost(requests=1)


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("ExecuteStatement", {}),
        ("Query", {"FilterExpression": "a = :a"}),
        ("Query", {"IndexName": "i"}),
        ("Scan", {"Select": "COUNT"}),
        ("UpdateItem", {"UpdateExpression": "SET a = list_append(a, :a)"}),
        ("TransactWriteItems", {"TransactItems": [{"Update": {"UpdateExpression": "SET a = list_append(a, :a)"}}]}),
        ("BatchExecuteStatement", {"Statements": [{"Statement": "SELECT * FROM t"}]}),
        ("BatchExecuteStatement", {"Statements": [{"Statement": "INSERT INTO t VALUE {'pk': 'a'}"}]}),
        ("BatchExecuteStatement", {"Statements": [{"Statement": "INSERT INTO t VALUE {'pk': ?}"}]}),
    ],
)
def test_a_request_whose_cost_its_answer_would_not_tell_is_refused(operation: str, request_: dict[str, Any]) -> None:
    with pytest.raises(Uncountable):
        refuse_uncountable(operation, request_)
