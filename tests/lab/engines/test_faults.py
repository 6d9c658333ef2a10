"""What stands between a client and a real engine: the proxy and its faults, and PartiQL item by item."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from botocore.config import Config

from lab.engines import partiql, proxy
from lab.engines.children import Children
from lab.engines.ministack import Engine
from lab.engines.proxy import OUTSIDE
from lab.engines.proxy_faults import FAULTS, Mix
from ledger import Change, Ledger, Settings
from ledger.conditions import Absent
from ledger.errors import NotAllowed, OutcomeUnknown, TableError, Throttled, TransactionConflict
from ledger.requests import AlreadyThere, DeleteMany, Get, Key, Put, PutMany, Transact
from ledger.table import DynamoTable
from reader import Reader

A, B = "eu-west-1", "us-east-1"
ITEM = {"pk": {"S": "p"}, "sk": {"S": "s"}}
BY_KIND = {fault.kind: fault for fault in FAULTS}


def test_an_error_that_says_nothing_was_written_never_follows_a_write() -> None:
    for fault in FAULTS:
        assert fault.answer not in ("throttled", "conflict") or fault.times == 0


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "embedded")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def name(engine: Engine, table_names: Iterator[str]) -> str:
    """A new table in both Regions."""
    made = next(table_names)
    for region in (A, B):
        engine.create_table(made, region)
    return made


@contextmanager
def behind(engine: Engine, mixed: Mix) -> Iterator[tuple[str, Callable[[tuple[object, ...]], object]]]:
    """The endpoint of a proxy with such a mix, and what tells it something."""
    with Children() as children:
        control, endpoint = proxy.start(children, engine, 1, mixed, item_by_item=True)
        yield endpoint, control.send


def table(endpoint: str, name: str, region: str = A, place: str = OUTSIDE) -> DynamoTable:
    """A table whose client sends once, so that each kind is seen as it is."""
    once = Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=5)
    client = boto3.client("dynamodb", region_name=region, endpoint_url=f"{endpoint}/{place}", config=once)
    return DynamoTable(name, region, lambda _: client, pause=lambda _: None)


@pytest.mark.parametrize(
    ("kind", "raised", "written"),
    [
        ("500 before", OutcomeUnknown, False),
        ("500 after it applied", OutcomeUnknown, True),
        ("throttled", Throttled, False),
        ("conflict", TransactionConflict, False),
        ("reset before", OutcomeUnknown, False),
        ("answer dropped after it applied", OutcomeUnknown, True),
        ("repeated", None, True),
    ],
)
def test_a_fault_does_to_a_put_what_its_kind_says(
    kind: str, raised: type[TableError] | None, written: bool, engine: Engine, name: str
) -> None:
    with behind(engine, {BY_KIND[kind]: 1.0}) as (endpoint, _):
        asked = table(endpoint, name)
        if raised is None:
            asked.answer(Put(ITEM))
        else:
            with pytest.raises(raised):
                asked.answer(Put(ITEM))
    assert ("Item" in engine.client(A).get_item(TableName=name, Key=ITEM)) == written


def test_a_cancelled_transaction_is_seen_as_a_conflict(engine: Engine, name: str) -> None:
    puts = tuple(Put({"pk": {"S": "p"}, "sk": {"S": sk}}, Absent()) for sk in "ab")
    with behind(engine, {BY_KIND["conflict"]: 1.0}) as (endpoint, _), pytest.raises(TransactionConflict):
        table(endpoint, name).answer(Transact(puts))
    assert engine.client(A).scan(TableName=name)["Count"] == 0


def test_a_partition_cuts_a_region_off_from_the_other_but_nobody_outside(engine: Engine, name: str) -> None:
    with behind(engine, {}) as (endpoint, tell):
        tell(("partition", True))
        table(endpoint, name, A, place=A).answer(Put(ITEM))
        table(endpoint, name, B).answer(Put(ITEM))
        with pytest.raises(OutcomeUnknown):
            table(endpoint, name, B, place=A).answer(Put(ITEM))
        tell(("partition", False))
        table(endpoint, name, B, place=A).answer(Put(ITEM))


def test_a_place_that_is_told_to_be_refused_is_refused_and_no_other_until_the_end_is_told(
    engine: Engine, name: str
) -> None:
    with behind(engine, {}) as (endpoint, tell):
        tell(("refuse", "denied", "ring"))
        table(endpoint, name, place="compact").answer(Put(ITEM))
        with pytest.raises(NotAllowed):
            table(endpoint, name, place="ring").answer(Get(Key("p", "s")))
        tell(("refuse", "throttled", ""))
        with pytest.raises(Throttled):
            table(endpoint, name, place="compact").answer(Get(Key("p", "s")))
        tell(("refuse", "", ""))
        assert table(endpoint, name, place="ring").answer(Get(Key("p", "s"))) == ITEM


def test_the_shipped_classes_speak_through_the_proxy_batches_too(engine: Engine, name: str) -> None:
    with behind(engine, {}) as (endpoint, _):
        settings = Settings(table=name, region=A, endpoint_url=f"{endpoint}/{OUTSIDE}")
        ledger = Ledger(settings)
        first = ledger.add("c", 1)
        receipts = ledger.add_many([Change("c", 4), Change("c", 16)])
        assert ledger.apply(first.delta).outcome == "replayed"
        assert [receipt.outcome for receipt in receipts if not isinstance(receipt, Exception)] == ["recorded"] * 2
        assert Reader(settings).read("c").value == 21


def test_a_client_that_sends_item_by_item_answers_as_one_that_sends_batches(engine: Engine, name: str) -> None:
    client = engine.client(A)
    partiql.send_item_by_item(client, through=engine.client(A))
    asked = DynamoTable(name, A, lambda _: client)

    def item(sk: str, change: int) -> dict[str, Any]:
        return {"pk": {"S": "p"}, "sk": {"S": sk}, "change": {"N": str(change)}}

    assert asked.answer(PutMany((item("a", 1), item("b", 1)))) == (None, None)
    assert asked.answer(PutMany((item("a", 2), item("c", 1)))) == (AlreadyThere(item("a", 1)), None)
    deletes = DeleteMany((item("a", 1), item("b", 2), item("x", 1)))
    assert asked.answer(deletes) == (None, AlreadyThere(item("b", 1)), None)
    assert [asked.answer(Get(Key("p", sk))) for sk in "abc"] == [None, item("b", 1), item("c", 1)]
    client.close()
