"""The tables of one contract: in memory, the simulator, moto, MiniStack and DynamoDB Local as
processes.

Where the environment names a run of smoke (SMOKE), its table alone, in its account: emptied before
each test.
"""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.session import Session
from moto import mock_aws

from lab.engines.ministack import Engine
from lab.smoke.visit import Visit, visit_of
from ledger.core.requests import Table
from ledger.tables.dynamo import DynamoTable
from ledger.tables.fast import FastClient
from ledger.tables.memory import MemoryTable
from simulator import Simulation
from tests.world import create_table, without_statements

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

HOME, ABROAD = "eu-west-1", "us-east-1"
FAST = " by FastClient"
SMOKE = os.environ.get("SMOKE", "")
OF_A_RUN = ["smoke"] if SMOKE else []
collect_ignore = ["test_engines.py"] if SMOKE else []


@dataclass(frozen=True)
class Replicas:
    """An empty table as its home Region sees it, and the replica that another Region sees."""

    home: Table
    abroad: Table


@cache  # a client costs more than the test it is for
def moto_client(region: str) -> "DynamoDBClient":
    client: DynamoDBClient = boto3.client(
        "dynamodb", region, aws_access_key_id="x", aws_secret_access_key="x"
    )
    without_statements(client)
    return client


def fast_client(engine: Engine, region: str) -> FastClient:
    session = Session()
    session.set_credentials("embedded", "embedded")
    return FastClient(region, engine.endpoint_url, session=session)


def emptied(visit: Visit) -> Any:
    """A client of a run's table, which is empty now; and the table's name on it."""
    client = visit.client("dynamodb")
    for page in client.get_paginator("scan").paginate(TableName=visit.table, ConsistentRead=True):
        for item in page["Items"]:
            client.delete_item(
                TableName=visit.table, Key={name: item[name] for name in ("pk", "sk")}
            )
    client.table_name = visit.table
    return client


@contextmanager
def entered(kind: str | Engine, name: str, *, fast: bool = False) -> Iterator[Replicas]:
    """kind: of the tables in this process, else an engine, which is asked by a FastClient or one
    of boto3's.
    """
    match kind:
        case "memory":
            abroad = MemoryTable(page_size=3)
            yield Replicas(MemoryTable(page_size=3, peers={ABROAD: abroad}), abroad)
        case "simulator":
            made = Simulation([HOME, ABROAD])
            yield Replicas(made.table(HOME), made.table(ABROAD))
        case "moto":
            with mock_aws():
                clients = {region: moto_client(region) for region in (HOME, ABROAD)}
                for client in clients.values():
                    create_table(client, name, pk="S", sk="S")
                yield Replicas(
                    *(DynamoTable(name, region, clients.__getitem__) for region in clients)
                )
        case "smoke":
            visit = visit_of(SMOKE)
            client = emptied(visit)
            one = DynamoTable(visit.table, visit.regions[0], lambda region: client)
            yield Replicas(one, one)
        case Engine():
            for region in (HOME, ABROAD):
                kind.create_table(name, region)
            make = partial(fast_client, kind) if fast else kind.client
            with closing(make(HOME)) as home, closing(make(ABROAD)) as away:
                clients = {HOME: home, ABROAD: away}
                yield Replicas(
                    *(DynamoTable(name, region, clients.__getitem__) for region in clients)
                )


def named(request: pytest.FixtureRequest) -> str | Engine:
    """What a parameter names: a kind of table, or a fixture that is an engine."""
    name = request.param.removesuffix(FAST)
    in_process = name in ("memory", "simulator", "moto", "smoke")
    kind: str | Engine = name if in_process else request.getfixturevalue(name)
    return kind


@pytest.fixture(
    params=OF_A_RUN
    or [
        *("memory", "simulator", "moto", "engine", "dynamodb_local"),
        *(f"engine{FAST}", f"dynamodb_local{FAST}"),
    ]
)
def replicas(request: pytest.FixtureRequest, table_names: Iterator[str]) -> Iterator[Replicas]:
    with entered(named(request), next(table_names), fast=request.param.endswith(FAST)) as made:
        yield made


@pytest.fixture
def table(replicas: Replicas) -> Table:
    return replicas.home


@pytest.fixture(
    scope="module", params=OF_A_RUN or ["memory", "simulator", "engine", "dynamodb_local"]
)
def kept(request: pytest.FixtureRequest, table_names: Iterator[str]) -> Iterator[Table]:
    """One table for a whole module, whose examples are many; each begins with its own items.

    Not of moto, which refuses some of their expressions, and takes what DynamoDB refuses.
    """
    prefix = "local-" if request.param == "dynamodb_local" else ""
    with entered(named(request), f"{prefix}{next(table_names)}") as made:
        yield made.home
