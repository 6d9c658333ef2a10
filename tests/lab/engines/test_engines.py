"""The engine as a process, what replicates between its Regions, and the proxy before it; skipped
where it is not.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from lab.engines import proxy
from lab.engines.children import Children
from lab.engines.ministack import Engine, EngineMissing
from lab.engines.proxy import OUTSIDE
from lab.engines.proxy_faults import FAULTS, Mix
from lab.engines.replicator import ReplicationError, Replicator
from tests.world import A, B

ITEM = {"pk": {"S": "p"}, "sk": {"S": "s"}}
BY_KIND = {fault.kind: fault for fault in FAULTS}


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "embedded")


def test_either_environment_finds_the_engine_of_the_larger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LEDGER_ENGINE", raising=False)
    program = tmp_path / "engine" / "bin" / "ministack"
    program.parent.mkdir(parents=True)
    program.touch()
    for prefix in (tmp_path, tmp_path / "small"):
        monkeypatch.setattr("sys.prefix", str(prefix))
        assert Engine().executable() == program
    monkeypatch.setattr("sys.prefix", str(tmp_path / "small" / "of another"))
    with pytest.raises(EngineMissing, match="is not installed"):
        Engine().executable()


@pytest.fixture
def name(engine: Engine, table_names: Iterator[str]) -> str:
    """A new table in both Regions."""
    made = next(table_names)
    for region in (A, B):
        engine.create_table(made, region)
    return made


def test_a_write_reaches_the_other_region_but_no_partition(engine: Engine, name: str) -> None:
    clients: dict[str, Any] = {region: engine.client(region) for region in (A, B)}

    def put(region: str, value: int) -> None:
        clients[region].put_item(TableName=name, Item={**ITEM, "value": {"N": str(value)}})

    def values() -> list[Any]:
        found = [
            clients[region].get_item(TableName=name, Key=ITEM, ConsistentRead=True)
            for region in (A, B)
        ]
        return [answer.get("Item", {}).get("value") for answer in found]

    with pytest.raises(ReplicationError, match=r"failed.*is closed"):  # noqa: PT012, SIM117
        with Replicator(engine, name, (A, B), random.Random(11), 0, 20, poll_ms=5) as replicator:
            put(A, 1)
            put(B, 2)
            replicator.drain()
            assert values() == [{"N": "2"}] * 2
            clients[B].delete_item(TableName=name, Key=ITEM)
            replicator.drain()
            assert values() == [None] * 2
            replicator.partition()
            put(B, 3)
            put(A, 4)
            with pytest.raises(ReplicationError, match="partitioned, call heal"):
                replicator.drain()
            assert values() == [{"N": "4"}, {"N": "3"}]
            replicator.heal()
            replicator.drain()
            assert values() == [{"N": "4"}] * 2
            clients[B].delete_table(TableName=name)
            with pytest.raises(ReplicationError, match=r"not drained.*was closed"):
                replicator.drain()


@contextmanager
def behind(
    engine: Engine, mixed: Mix
) -> Iterator[tuple[str, Callable[[tuple[object, ...]], object]]]:
    """The endpoint of a proxy with such a mix, and what its commands are sent by."""
    with Children() as children:
        control, endpoint = proxy.start(children, engine, 1, mixed)
        yield endpoint, control.send


def error_of_put(
    name: str, endpoint: str, region: str = A, place: str = OUTSIDE, item: Any = ITEM
) -> str:
    """The code of the error, or the name of its class; empty where there is none.

    It is sent once.
    """
    once = Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=5)
    client = boto3.client(
        "dynamodb", region_name=region, endpoint_url=f"{endpoint}/{place}", config=once
    )
    try:
        client.put_item(TableName=name, Item=item)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    except BotoCoreError as error:
        return type(error).__name__
    return ""


THROTTLED = "ProvisionedThroughputExceededException ThrottlingException RequestLimitExceeded"
KINDS = [  # what a put meets            what its caller sees          written
    ("500 before", "InternalServerError", False),
    ("500 after it applied", "InternalServerError", True),
    ("throttled", THROTTLED, False),
    ("conflict", "TransactionConflictException", False),
    ("answer dropped after it applied", "ConnectionClosedError", True),
]


def test_a_fault_does_to_a_put_what_its_kind_says(engine: Engine, name: str) -> None:
    for kind, expected, written in KINDS:
        item = ITEM | {"pk": {"S": kind}}
        with behind(engine, {BY_KIND[kind]: 1.0}) as (endpoint, _):
            assert error_of_put(name, endpoint, item=item) in expected.split(), kind
        assert ("Item" in engine.client(A).get_item(TableName=name, Key=item)) == written, kind
    assert all(fault.times == 0 for fault in FAULTS if fault.answer in ("throttled", "conflict"))
