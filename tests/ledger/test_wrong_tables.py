"""A table that is missing, or is not ours: every class says which of the two, and writes nothing."""

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from lab.engines.ministack import Engine
from ledger import Change, Ledger, Settings
from ledger.clocks import instants, wall_clock
from ledger.errors import LedgerError, TableMismatch, TableMissing
from ledger.lane.add import add
from ledger.requests import run
from ledger.table import DynamoTable
from tests.ledger.test_shape import CALLS

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

REGION = "eu-west-1"


@pytest.fixture(scope="module")
def client(engine: Engine) -> Iterator["DynamoDBClient"]:
    with closing(engine.client(REGION)) as made:
        yield made


@pytest.fixture
def settings(table_names: Iterator[str]) -> Settings:
    return Settings(table=next(table_names), region=REGION)


def create(client: "DynamoDBClient", name: str, **keys: str) -> None:
    """A table with these keys (name=type), the first one the partition key."""
    kinds = zip(keys, ("HASH", "RANGE"), strict=False)
    arguments: Any = {
        "KeySchema": [{"AttributeName": key, "KeyType": kind} for key, kind in kinds],
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": kind} for key, kind in keys.items()],
    }
    client.create_table(TableName=name, BillingMode="PAY_PER_REQUEST", **arguments)


def items(client: "DynamoDBClient", settings: Settings) -> list[Any]:
    return client.scan(TableName=settings.table)["Items"]


@pytest.mark.parametrize("call", CALLS)
def test_a_missing_table_is_told_as_missing(client: "DynamoDBClient", settings: Settings, call: str) -> None:
    with pytest.raises(TableMissing, match=settings.table):
        CALLS[call](settings, DynamoTable.of(settings, {REGION: client}))


@pytest.mark.parametrize("call", [name for name in CALLS if name != "run"])
@pytest.mark.parametrize("keys", [{"id": "S"}, {"pk": "S", "range": "S"}, {"pk": "N", "sk": "S"}], ids=str)
def test_a_table_with_other_keys_is_told_as_a_mismatch(
    client: "DynamoDBClient", settings: Settings, call: str, keys: dict[str, str]
) -> None:
    create(client, settings.table, **keys)
    with pytest.raises(TableMismatch, match=settings.table):
        CALLS[call](settings, DynamoTable.of(settings, {REGION: client}))
    assert items(client, settings) == []


def test_changes_of_a_batch_are_told_that_the_table_is_wrong(client: "DynamoDBClient", settings: Settings) -> None:
    (missing,) = Ledger(settings, client=client).add_many([Change("c", 1)])
    assert type(missing) is TableMissing
    create(client, settings.table, id="S")
    first, second = Ledger(settings, client=client).add_many([Change("c", 1), Change("d", 1)])
    assert [type(first), type(second)] == [TableMismatch, TableMismatch]
    assert items(client, settings) == []


@pytest.mark.parametrize(
    ("keys", "theirs"),
    [
        ({"id": "S"}, {"id": {"S": "a"}}),
        ({"pk": "S"}, {"pk": {"S": "a"}}),
        ({"pk": "N", "sk": "S"}, {"pk": {"N": "1"}, "sk": {"S": "a"}}),
    ],
    ids=str,
)
def test_a_run_over_the_items_of_others_is_a_mismatch(
    client: "DynamoDBClient", settings: Settings, keys: dict[str, str], theirs: dict[str, Any]
) -> None:
    create(client, settings.table, **keys)
    client.put_item(TableName=settings.table, Item=theirs)
    with pytest.raises(TableMismatch):
        CALLS["run"](settings, DynamoTable.of(settings, {REGION: client}))
    assert items(client, settings) == [theirs]


def test_two_changes_are_never_one_in_a_table_without_sk(client: "DynamoDBClient", settings: Settings) -> None:
    """There the second change of a lane meets the first: to call it a replay would lose it."""
    create(client, settings.table, pk="S")
    ledger = Ledger(settings, client=client)
    with pytest.raises(TableMismatch):  # at the look at its shape
        ledger.add("c", 1)
    assert items(client, settings) == []
    table, now = DynamoTable.of(settings, {REGION: client}), instants(wall_clock)
    run(add(ledger.prepare("c", 1)), table, now)  # as a role that may not look
    with pytest.raises(LedgerError):
        run(add(ledger.prepare("c", 1)), table, now)
