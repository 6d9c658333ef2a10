"""The capacity that a function consumes, as the engine says."""

from collections.abc import Iterator
from typing import Any

import pytest

from lab.engines.ministack import Engine
from ledger.requests import DeleteMany, Get, Key, Put, Query, Scan, Transact
from ledger.table import DynamoTable
from service.consumption import telling
from service.runtime import Runtime
from tests.service.http_client import Context
from tests.service.support import Told
from tests.support import A


def item(sk: str, size: int = 0) -> Any:
    return {"pk": {"S": "p"}, "sk": {"S": sk}, "x": {"S": "x" * size}}


def test_a_function_tells_what_its_requests_consumed_from_all_its_threads_and_when_it_fails(
    engine: Engine, table_names: Iterator[str]
) -> None:
    name = next(table_names)
    engine.create_table(name, A)
    client = engine.client(A)
    told, runtime = Told(), Runtime(DynamoTable(name, A, lambda _: client))

    def asked(request: Any) -> Any:
        return (yield request)

    def work(requests: Any, _: Any) -> None:
        runtime.run_each(map(asked, requests))
        if not requests:
            raise KeyError

    def consumed(*requests: Any) -> tuple[float, float]:
        told.metrics.clear()
        telling(told, work)(requests, Context())  # type: ignore[arg-type]
        return told.metrics["ReadUnits"], told.metrics["WriteUnits"]

    assert consumed(Put(item("a", 1_500))) == (0, 2)
    assert consumed(Get(Key("p", "a")), Query("p"), Query("p", consistent=False)) == (2.5, 0)
    assert consumed(Scan()) == (0.5, 0)
    assert consumed(Transact((Put(item("b")), Put(item("c"))))) == (0, 4)
    assert consumed(DeleteMany((item("b"), item("c")))) == (0, 2)
    told.metrics.clear()
    with pytest.raises(KeyError):
        consumed()
    assert (told.metrics["ReadUnits"], told.metrics["WriteUnits"]) == (0, 0)
    client.close()
