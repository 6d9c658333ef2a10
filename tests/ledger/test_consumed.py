"""What clients consume, as the answers say."""

from typing import Any

from ledger.consumed import Consumed, Consumption
from ledger.errors import NotAllowed
from ledger.requests import DeleteMany, Get, Key, Put, Query, Request, Transact
from ledger.table import DynamoTable
from tests.ledgerctl.support import A, aws, refusal

ANSWERS: dict[str, Any] = {
    "GetItem": {"ConsumedCapacity": {"CapacityUnits": 2.5}},
    "Query": {"Items": []},  # it does not say
    "PutItem": {"ConsumedCapacity": {"CapacityUnits": 3}},
    "TransactWriteItems": {"ConsumedCapacity": [{"CapacityUnits": 4}, {"CapacityUnits": 0.5}]},
    "DescribeTable": {"Table": {}},
}


def answer(operation: str, asked: Any) -> tuple[int, Any]:
    assert (asked.get("ReturnConsumedCapacity") == "TOTAL") == (operation != "DescribeTable")
    return (200, ANSWERS[operation]) if operation in ANSWERS else refusal("AccessDeniedException")


def test_answers_are_added_up_and_those_that_do_not_say_are_counted() -> None:
    world = aws(answer)
    client = world.session(None).client("dynamodb", region_name=A, config=world.config)
    consumed = Consumed()
    consumed.attach(client)
    consumed.attach(client)
    table = DynamoTable("counters", A, lambda _: client)
    item = {"pk": {"S": "p"}, "sk": {"S": "s"}}
    asked: tuple[Request, ...] = (Get(Key("p", "s")), Query("p"), Put(item), Transact((Put(item), Put(item))))
    for request in asked:
        table.answer(request)
    client.describe_table(TableName="counters")
    assert [type(each) for each in table.answer(DeleteMany((item,)))] == [NotAllowed]
    assert consumed.take() == Consumption(requests=4, read_units=2.5, write_units=7.5, untold=1)
    assert consumed.take() == Consumption()
