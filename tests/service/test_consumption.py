"""The capacity that the functions consume, as the engine says."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lab.engines.ministack import Engine
from ledger.requests import DeleteMany, Get, Key, Put, Query, Scan, Transact
from ledger.table import DynamoTable
from service.consumption import Units
from tests.service.support import Told
from tests.support import A


def item(sk: str, size: int = 0) -> Any:
    return {"pk": {"S": "p"}, "sk": {"S": sk}, "x": {"S": "x" * size}}


def test_every_kind_of_request_is_counted_once(engine: Engine, table_names: Iterator[str]) -> None:
    name = next(table_names)
    engine.create_table(name, A)
    client = engine.client(A)
    units, told = Units(), Told()
    units.attach(client)
    units.attach(client)
    table = DynamoTable(name, A, lambda _: client)

    def consumed(*requests: Any) -> tuple[float, float]:
        for request in requests:
            table.answer(request)
        told.metrics.clear()
        units.tell(told)
        return told.metrics["ReadUnits"], told.metrics["WriteUnits"]

    assert consumed(Put(item("a", 1_500))) == (0, 2)
    assert consumed(Get(Key("p", "a")), Query("p"), Query("p", consistent=False)) == (2.5, 0)
    assert consumed(Scan()) == (0.5, 0)  # BatchGetItem: this engine does not tell what it consumed
    assert consumed(Transact((Put(item("b")), Put(item("c"))))) == (0, 4)
    assert consumed(DeleteMany((item("b"), item("c")))) == (0, 2)
    assert consumed() == (0, 0)
    with pytest.raises(ClientError):
        client.get_item(TableName="no-such-table", Key={"pk": {"S": "p"}, "sk": {"S": "a"}})
    client.describe_table(TableName=name)
    assert consumed() == (0, 0)
    client.close()
