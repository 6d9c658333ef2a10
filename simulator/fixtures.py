"""Fixtures of pytest for the tests of your own code; the wheel registers this file as a plugin.

Rule 1: pytest loads it in every run where the wheel is installed. So it imports pytest alone, and
each fixture what it needs.
Rule 2: nothing outlives a test: each has tables, clock and clients of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

    from ledger import Ledger, Settings
    from reader import Reader
    from simulator.clocked import ClockedTable
    from simulator.double import Simulation

MARK = "counters"
OF_A_SIMULATION = ("seed", "faults", "strong")
REGIONS = ("eu-west-1", "us-east-1")
"""Of a simulation; the other fixtures have the first, unless the mark says otherwise."""

NEEDS_MOTO = (
    "The fixture moto_counters needs moto 5 or later: pip install 'moto[dynamodb]>=5'. "
    "counter_table needs nothing."
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARK}(**settings): sets up exact-counter's fixtures: fields of Settings, such as "
        "regions and limits; start, the time at which they begin; and for a simulation seed, "
        "faults and strong.",
    )


@pytest.fixture
def simulation(request: pytest.FixtureRequest) -> Simulation:
    """A table of two Regions, with lag, cuts and faults, on a clock of its own.

    `@pytest.mark.counters(regions=, seed=, faults=, start=, strong=)` says otherwise.
    """
    from simulator.double import Simulation

    said = _said(request)
    given = {name: said[name] for name in ("start", *OF_A_SIMULATION) if name in said}
    return Simulation(said.get("regions", REGIONS), **given)


@pytest.fixture
def counter_table(request: pytest.FixtureRequest) -> ClockedTable:
    """A table in memory, and its clock, which stands still until you call its `wait`."""
    from simulator.clocked import ClockedTable

    return ClockedTable(_said(request).get("start"))


@pytest.fixture
def counter_ledger(request: pytest.FixtureRequest, counter_table: ClockedTable) -> Ledger:
    """A Ledger of counter_table. `@pytest.mark.counters(limits=...)` gives it settings."""
    from ledger import Ledger

    settings = _settings(request)
    tables = dict.fromkeys(settings.regions, counter_table)
    return Ledger(settings, tables=tables, clock=counter_table.clock)


@pytest.fixture
def counter_reader(request: pytest.FixtureRequest, counter_table: ClockedTable) -> Reader:
    """A Reader of counter_table, with the settings of counter_ledger. It keeps no value, because
    the clock stands still, and a value that is kept would never grow old.
    """
    from reader import Reader

    return Reader(_settings(request), table=counter_table, clock=counter_table.clock, ttl=0)


@pytest.fixture
def moto_counters(request: pytest.FixtureRequest) -> Iterator[DynamoDBClient]:
    """A client of moto, with the table `counters`, which a Ledger, a Reader and a Compactor can use
    whole. It is of one Region, eu-west-1 unless the mark says otherwise. Everything else of boto3
    is moto's meanwhile, too.
    """
    mock_aws = _mock_aws()
    if mock_aws is None:
        pytest.fail(NEEDS_MOTO, pytrace=False)
    settings = _settings(request)
    with mock_aws():
        yield _moto_client(settings.table, settings.region)


def _mock_aws() -> Any:
    try:
        from moto import mock_aws
    except ImportError:  # no moto, or an older one
        return None
    return mock_aws


def _said(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the marks of a test say; the nearest one wins."""
    from ledger import Settings

    known = {field.name for field in fields(Settings)} | {"start", *OF_A_SIMULATION}
    said: dict[str, Any] = {}
    for mark in request.node.iter_markers(MARK):
        if mark.args:
            pytest.fail(f"@pytest.mark.{MARK} takes settings by name.", pytrace=False)
        for name in mark.kwargs.keys() - known:
            pytest.fail(f"@pytest.mark.{MARK} has no setting {name!r}.", pytrace=False)
        said = mark.kwargs | said
    return said


def _settings(request: pytest.FixtureRequest) -> Settings:
    from ledger import Settings

    said = _said(request)
    given = {name: said[name] for name in said.keys() - {"start", *OF_A_SIMULATION}}
    # a mark may say the Region, all Regions or both, as Settings takes them
    regions = given.get("regions")
    first = regions[0] if isinstance(regions, tuple | list) and regions else REGIONS[0]
    given.setdefault("region", first)
    return Settings(**({"table": "counters"} | given))


def _moto_client(table: str, region: str) -> DynamoDBClient:
    import boto3
    from botocore.exceptions import ClientError

    named: Any = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
    client: Any = boto3.client("dynamodb", region_name=region, **named)

    def refuse(**_: object) -> None:
        # moto reads no parameters of PartiQL. The library takes this for a role without that right,
        # and writes by single requests.
        error = {"Error": {"Code": "AccessDeniedException", "Message": "moto has no PartiQL"}}
        raise ClientError(error, "BatchExecuteStatement")  # type: ignore[arg-type]

    client.meta.events.register("before-call.dynamodb.BatchExecuteStatement", refuse)
    # moto's tables take one request at a time, and a Compactor has threads
    lock, send = threading.RLock(), client._make_api_call

    def one_at_a_time(*arguments: Any) -> Any:
        with lock:
            return send(*arguments)

    client._make_api_call = one_at_a_time
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")
        ],
    )
    return client  # type: ignore[no-any-return]
