"""The tables of one contract: in memory, the simulator, moto, MiniStack and DynamoDB Local as processes."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

from lab.engines.ministack import Engine
from ledger.memory import MemoryTable
from ledger.requests import Table
from ledger.table import DynamoTable
from simulator import Simulation
from tests.world import without_statements

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

HOME, ABROAD = "eu-west-1", "us-east-1"


@dataclass(frozen=True)
class World:
    """An empty table as its home Region sees it, and the replica that another Region sees."""

    home: Table
    abroad: Table


@contextmanager
def memory() -> Iterator[World]:
    abroad = MemoryTable(page_size=3)
    yield World(MemoryTable(page_size=3, peers={ABROAD: abroad}), abroad)


@cache  # a client costs more than the test it is for
def moto_client(region: str) -> "DynamoDBClient":
    client: DynamoDBClient = boto3.client("dynamodb", region, aws_access_key_id="x", aws_secret_access_key="x")
    without_statements(client)
    return client


def create_table(client: "DynamoDBClient", name: str) -> None:
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": each, "AttributeType": "S"} for each in ("pk", "sk")],
        BillingMode="PAY_PER_REQUEST",
    )


@contextmanager
def moto() -> Iterator[World]:
    with mock_aws():
        clients = {region: moto_client(region) for region in (HOME, ABROAD)}
        for client in clients.values():
            create_table(client, "counters")
        yield World(*(DynamoTable("counters", region, clients.__getitem__) for region in clients))


@contextmanager
def simulation() -> Iterator[World]:
    made = Simulation([HOME, ABROAD])
    yield World(made.table(HOME), made.table(ABROAD))


@contextmanager
def process(engine: Engine, name: str) -> Iterator[World]:
    for region in (HOME, ABROAD):
        engine.create_table(name, region)
    with closing(engine.client(HOME)) as home, closing(engine.client(ABROAD)) as abroad:
        clients = {HOME: home, ABROAD: abroad}
        yield World(*(DynamoTable(name, region, clients.__getitem__) for region in clients))


@pytest.fixture(params=["memory", "simulator", "moto", "engine", "dynamodb_local"])
def world(request: pytest.FixtureRequest, table_names: Iterator[str]) -> Iterator[World]:
    match request.param:
        case "memory":
            entered = memory()
        case "simulator":
            entered = simulation()
        case "moto":
            entered = moto()
        case _:
            entered = process(request.getfixturevalue(request.param), next(table_names))
    with entered as made:
        yield made


@pytest.fixture
def table(world: World) -> Table:
    return world.home
