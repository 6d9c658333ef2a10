"""A client that sends a batch of PartiQL item by item answers as one that sends batches."""

from collections.abc import Iterator
from typing import Any

from lab.engines import partiql
from lab.engines.ministack import Engine
from ledger.requests import AlreadyThere, DeleteMany, Get, Key, PutMany
from ledger.table import DynamoTable

A = "eu-west-1"


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
