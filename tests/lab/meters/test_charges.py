"""What each operation costs, from hand-made requests and answers."""

from typing import Any

import pytest

from lab.meters.charge import Charge
from lab.meters.charges import Uncountable, charge, refuse_uncountable
from lab.meters.item_sizes import ItemSizes

Fields = dict[str, Any]

KEY = {"pk": {"S": "p"}, "sk": {"S": "s"}}  # 6 bytes
OTHER = {"pk": {"S": "p"}, "sk": {"S": "t"}}
OF_KEY: Fields = {"TableName": "t", "Key": KEY}
CONDITION_FAILED = {"Error": {"Code": "ConditionalCheckFailedException"}}
CANCELLED = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": [{"Code": "None"}] * 2}
THROTTLED = {"Error": {"Code": "ThrottlingException"}}


def item(size: int, key: Fields = KEY) -> Fields:
    return {**key, "b": {"B": bytes(size - 7)}}


def put(size: int) -> Fields:
    return {"TableName": "t", "Item": item(size)}


def seen(*items: Fields) -> ItemSizes:
    memory = ItemSizes()
    for each in items:
        memory.put("t", each)
    return memory


def writes(units: int, replicated: int | None = None) -> Charge:
    return Charge(requests=1, write_units=units, replicated_units=units if replicated is None else replicated)


def reads(units: float) -> Charge:
    return Charge(requests=1, read_units=units)


def transaction(token: str = "token") -> Fields:
    actions = [{"Put": put(1500)}, {"ConditionCheck": {"TableName": "t", "Key": OTHER}}]
    return {"TransactItems": actions, "ClientRequestToken": token}


INSERT = {"Statement": "INSERT INTO \"t\" VALUE {'pk': ?, 'sk': ?, 'b': ?}", "Parameters": list(item(1500).values())}
INSERTED = {"Responses": [{"TableName": "t"}, *({"Error": {"Code": c}} for c in ("DuplicateItem", "ThrottlingError"))]}
DELETES = [{"DeleteRequest": {"Key": key}} for key in (KEY, OTHER)]
BATCH = {"RequestItems": {"t": DELETES}}
ADD = {
    **OF_KEY,
    "UpdateExpression": "ADD #n :d",
    "ExpressionAttributeNames": {"#n": "total"},
    "ExpressionAttributeValues": {":d": {"N": "1"}},
}
ABSENT = {"pk": {"S": "p"}, "sk": {"S": "absent"}}
WANTED = {"RequestItems": {"t": {"Keys": [KEY, OTHER, ABSENT], "ConsistentRead": True}}}
FOUND = {"Responses": {"t": [item(1536), item(6656, OTHER)]}}
UNPROCESSED = {"Responses": {"t": [item(100)]}, "UnprocessedKeys": {"t": {"Keys": [OTHER]}}}
STRONG = {"TableName": "t", "ConsistentRead": True}
PROJECTED = {**OF_KEY, "ProjectionExpression": "a", "ConsistentRead": True}


@pytest.mark.parametrize(
    ("operation", "request_", "answer", "there", "cost"),
    [
        pytest.param("PutItem", put(100), {}, [item(3000)], writes(3), id="a put costs the old item if it is larger"),
        pytest.param("PutItem", put(3000), {}, [item(100)], writes(3), id="else the new one"),
        pytest.param("PutItem", put(3000), None, [], writes(3), id="also when its answer was lost"),
        pytest.param(
            *("PutItem", put(100), CONDITION_FAILED, [item(3000)], writes(3, replicated=0)),
            id="a failed condition costs the larger item and is not replicated",
        ),
        pytest.param(
            "PutItem", put(3000), CONDITION_FAILED, [item(100)], writes(3, replicated=0), id="whichever it is"
        ),
        pytest.param(
            *("PutItem", put(100), {**CONDITION_FAILED, "Item": item(3000)}, [], writes(3, replicated=0)),
            id="a failed condition says how large the item is",
        ),
        pytest.param("UpdateItem", ADD, {}, [item(3000)], writes(3), id="an ADD to a large item costs the whole item"),
        pytest.param(
            *("BatchExecuteStatement", {"Statements": [INSERT] * 3}, INSERTED, [], writes(4, replicated=2)),
            id="inserts are charged statement by statement",
        ),
        pytest.param("ExecuteStatement", INSERT, {}, [], writes(2), id="one that is a request by itself, too"),
        pytest.param(
            *("ExecuteStatement", INSERT, {"Error": {"Code": "DuplicateItem"}}, [item(3000)], writes(3, replicated=0)),
            id="and where a key is taken",
        ),
        pytest.param(
            *("BatchWriteItem", BATCH, {}, [item(500), item(3584, OTHER)], writes(1 + 4)),
            id="a batch of deletes rounds up item by item",
        ),
        pytest.param(
            *("BatchWriteItem", BATCH, {"UnprocessedItems": {"t": DELETES[1:]}}, [item(500)], writes(1)),
            id="an unprocessed write costs nothing",
        ),
        pytest.param(
            *("TransactWriteItems", transaction(), {}, [], writes(2 * 2 + 2, replicated=4)),
            id="a transaction costs twice and a check is not replicated",
        ),
        pytest.param("GetItem", OF_KEY, {}, [item(9000)], reads(0.5), id="an absent item costs the least there is"),
        pytest.param("GetItem", {**OF_KEY, "ConsistentRead": True}, {}, [], reads(1), id="and twice that when strong"),
        pytest.param(
            *("GetItem", PROJECTED, {"Item": {"a": {"N": "1"}}}, [item(9000)], reads(3)),
            id="a projected get costs the whole item",
        ),
        pytest.param("BatchGetItem", WANTED, FOUND, [], reads(1 + 2 + 1), id="a batch get rounds up item by item"),
        pytest.param(
            *("BatchGetItem", {"RequestItems": {"t": {"Keys": [KEY, OTHER]}}}, UNPROCESSED, [], reads(0.5)),
            id="an unprocessed key costs nothing",
        ),
        pytest.param(
            *("Query", STRONG, {"Items": [item(1500), item(1500, OTHER)]}, [], reads(1)),
            id="a query rounds up once for the page",
        ),
        pytest.param("Query", {"TableName": "t"}, {"Items": []}, [], reads(0.5), id="an empty page costs the least"),
        pytest.param(
            *("Scan", {"TableName": "t", "ProjectionExpression": "pk, sk"}, {"Items": [KEY, OTHER]}),
            *([item(5000), item(100, OTHER)], reads(1)),
            id="a projected scan costs the whole items",
        ),
        pytest.param(
            "DescribeTable", {"TableName": "t"}, {}, [], writes(0), id="an operation on a table costs no units"
        ),
        *(
            pytest.param("PutItem", put(100), {"Error": {"Code": code}}, [], writes(0), id=f"{code} costs no units")
            for code in ("ThrottlingException", "InternalServerError", "ValidationException")
        ),
        *(
            pytest.param(operation, {}, THROTTLED, [], writes(0), id=f"a throttled {operation} costs no units")
            for operation in ("GetItem", "BatchGetItem", "Query", "BatchWriteItem", "BatchExecuteStatement")
        ),
        pytest.param("TransactWriteItems", transaction(), THROTTLED, [], writes(0), id="nor does such a transaction"),
    ],
)
def test_a_request_costs(
    operation: str, request_: Fields, answer: Fields | None, there: list[Fields], cost: Charge
) -> None:
    assert charge(operation, request_, answer, seen(*there)) == cost


SET = {
    **OF_KEY,
    "UpdateExpression": "SET #n = if_not_exists(#n, :zero), blob = :b",
    "ExpressionAttributeNames": {"#n": "total", "#unused": "x" * 100},
    "ExpressionAttributeValues": {":zero": {"N": "0"}, ":b": {"B": bytes(50)}, ":if": {"S": "x" * 100}},
}
OF_SETS = {
    **OF_KEY,
    "UpdateExpression": "SET b = :b ADD #ids :more, n :n DELETE others :gone",
    "ExpressionAttributeNames": {"#ids": "ids"},
    "ExpressionAttributeValues": {
        ":b": {"S": "x"},
        ":more": {"SS": ["x" * 20, "y" * 10]},
        ":n": {"N": "1"},
        ":gone": {"SS": ["z" * 90]},
    },
}
RETURNED = {**OF_KEY, "UpdateExpression": "REMOVE b", "ReturnValues": "ALL_NEW"}


@pytest.mark.parametrize(
    ("operation", "request_", "answer", "there", "size"),
    [
        pytest.param("PutItem", put(3000), {}, [], 3000, id="a put is remembered"),
        pytest.param("PutItem", put(3000), None, [], 3000, id="also when its answer was lost"),
        pytest.param("UpdateItem", SET, {}, [], 6 + (5 + 21) + (4 + 50), id="an item is as large as what was set"),
        pytest.param("UpdateItem", OF_SETS, {}, [item(1000)], 1030, id="a set grows by the elements added to it"),
        pytest.param("UpdateItem", RETURNED, {"Attributes": item(2000)}, [], 2000, id="what is returned is exact"),
        pytest.param("DeleteItem", OF_KEY, {}, [item(1600)], 0, id="a delete leaves nothing"),
        pytest.param(
            "TransactWriteItems", transaction(), CANCELLED, [], 0, id="a cancelled transaction writes nothing"
        ),
    ],
)
def test_an_item_is_known_to_be(
    operation: str, request_: Fields, answer: Fields | None, there: list[Fields], size: int
) -> None:
    memory = seen(*there)
    cost = charge(operation, request_, answer, memory)
    assert memory.size("t", KEY) == size
    if there:
        assert cost == writes(2)
    if answer == CANCELLED:
        assert cost == writes(6, replicated=0)


def test_a_transaction_repeated_with_its_token_only_reads() -> None:
    memory = ItemSizes()
    charge("TransactWriteItems", transaction(), {}, memory)
    assert charge("TransactWriteItems", transaction(), {}, memory) == reads(2 + 2)
    assert charge("TransactWriteItems", transaction("another"), {}, memory) == writes(6, replicated=4)


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("ExecuteStatement", {"Statement": "SELECT * FROM t"}),
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
def test_a_request_whose_cost_its_answer_would_not_tell_is_refused(operation: str, request_: Fields) -> None:
    with pytest.raises(Uncountable):
        refuse_uncountable(operation, request_)


def test_every_further_region_pays_the_replicated_units_again_and_costs_subtract() -> None:
    assert Charge(requests=2, write_units=3, replicated_units=2).writes_in(3) == 3 + 2 + 2
    earlier, between = Charge(1, 0.5, 2, 2), Charge(3, 1.5, 1, 0)
    assert earlier + between - earlier == between
