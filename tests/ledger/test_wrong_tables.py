"""A table that is missing, or is not ours: every class says which of the two, and writes nothing."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from lab.engines.ministack import Engine
from ledger import Change, Ledger, Settings
from ledger.clocks import instants, wall_clock
from ledger.errors import LedgerError, TableMismatch, TableMissing
from ledger.lane.add import add
from ledger.requests import run
from ledger.table import DynamoTable
from tests.ledger.test_shape import CALLS
from tests.world import A

THEIRS: list[tuple[dict[str, str], dict[str, Any]]] = [  # the keys of a table that is not ours, and an item of it
    ({"id": "S"}, {"id": {"S": "a"}}),
    ({"pk": "S"}, {"pk": {"S": "a"}}),
    ({"pk": "S", "range": "S"}, {"pk": {"S": "a"}, "range": {"S": "a"}}),
    ({"pk": "N", "sk": "S"}, {"pk": {"N": "1"}, "sk": {"S": "a"}}),
]


@pytest.fixture(scope="module")
def client(engine: Engine) -> Iterator[Any]:
    with closing(engine.client(A)) as made:
        yield made


def create(client: Any, name: str, keys: dict[str, str]) -> tuple[Settings, DynamoTable]:
    """A table with these keys, the first one the partition key; none for no keys."""
    kinds = zip(keys, ("HASH", "RANGE"), strict=False)
    if keys:
        client.create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in kinds],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": kind} for key, kind in keys.items()],
        )
    settings = Settings(table=name, region=A)
    return settings, DynamoTable.of(settings, {A: client})


def test_a_missing_table_is_told_as_missing_and_one_of_others_as_a_mismatch(
    client: Any, table_names: Iterator[str]
) -> None:
    settings, table = create(client, next(table_names), {})
    for call in CALLS.values():
        with pytest.raises(TableMissing, match=settings.table):
            call(settings, table)
    (missing,) = Ledger(settings, table=table).add_many([Change("c", 1)])
    assert type(missing) is TableMissing
    for keys, theirs in THEIRS:
        settings, table = create(client, next(table_names), keys)
        for name, call in CALLS.items():
            if name != "run":  # of an empty table it says nothing
                with pytest.raises(TableMismatch, match=settings.table):
                    call(settings, table)
        outcomes = Ledger(settings, table=table).add_many([Change("c", 1), Change("d", 1)])
        assert [type(each) for each in outcomes] == [TableMismatch] * 2
        client.put_item(TableName=settings.table, Item=theirs)
        with pytest.raises(TableMismatch):
            CALLS["run"](settings, table)
        assert client.scan(TableName=settings.table)["Items"] == [theirs]


def test_two_changes_are_never_one_in_a_table_without_sk(client: Any, table_names: Iterator[str]) -> None:
    """There the second change of a lane meets the first: to call it a replay would lose it."""
    settings, table = create(client, next(table_names), {"pk": "S"})
    ledger, now = Ledger(settings, table=table), instants(wall_clock)
    run(add(ledger.prepare("c", 1)), table, now)  # as a role that may not look at the shape
    with pytest.raises(LedgerError):
        run(add(ledger.prepare("c", 1)), table, now)
