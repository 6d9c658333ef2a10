"""The proxy between a client and a real engine: its faults, what it cuts and refuses, and PartiQL item by item."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from lab.engines import proxy
from lab.engines.children import Children
from lab.engines.ministack import Engine
from lab.engines.proxy import OUTSIDE
from lab.engines.proxy_faults import FAULTS, Mix
from ledger import Change, Ledger, Settings
from reader import Reader

A, B = "eu-west-1", "us-east-1"
ITEM = {"pk": {"S": "p"}, "sk": {"S": "s"}}
BY_KIND = {fault.kind: fault for fault in FAULTS}


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
    """The endpoint of a proxy with such a mix, and what its commands are sent by."""
    with Children() as children:
        control, endpoint = proxy.start(children, engine, 1, mixed, item_by_item=True)
        yield endpoint, control.send


def client(endpoint: str, region: str = A, place: str = OUTSIDE) -> Any:
    """A client that sends once, so that each kind is seen as it is."""
    once = Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=5)
    return boto3.client("dynamodb", region_name=region, endpoint_url=f"{endpoint}/{place}", config=once)


def error_of(call: Callable[[], object]) -> str:
    """Its code, or the name of its class; empty where there is none."""
    try:
        call()
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
    ("reset before", "ConnectionClosedError", False),
    ("answer dropped after it applied", "ConnectionClosedError", True),
    ("repeated", "", True),
]


def test_a_fault_does_to_a_put_what_its_kind_says(engine: Engine, name: str) -> None:
    for kind, expected, written in KINDS:
        item = ITEM | {"pk": {"S": kind}}
        with behind(engine, {BY_KIND[kind]: 1.0}) as (endpoint, _):
            asked = client(endpoint)
            error = error_of(lambda: asked.put_item(TableName=name, Item=item))  # noqa: B023
        assert error in expected.split() or error == expected, kind
        assert ("Item" in engine.client(A).get_item(TableName=name, Key=item)) == written, kind


def test_an_error_that_says_nothing_was_written_never_follows_a_write() -> None:
    for fault in FAULTS:
        assert fault.answer not in ("throttled", "conflict") or fault.times == 0


def test_a_partition_and_a_refusal_meet_who_is_named_until_they_end(engine: Engine, name: str) -> None:
    def error(region: str, place: str) -> str:
        return error_of(lambda: client(endpoint, region, place).put_item(TableName=name, Item=ITEM))

    with behind(engine, {}) as (endpoint, send):
        send(("partition", True))
        assert [error(A, A), error(B, OUTSIDE), error(B, A)] == ["", "", "ConnectionClosedError"]
        send(("partition", False))
        assert error(B, A) == ""
        send(("refuse", "denied", "ring"))
        assert [error(A, "compact"), error(A, "ring")] == ["", "AccessDeniedException"]
        send(("refuse", "throttled", ""))
        assert error(A, "compact") in THROTTLED.split()
        send(("refuse", "", ""))
        assert error(A, "ring") == ""


def test_the_shipped_classes_speak_through_it_and_a_batch_answers_item_by_item(engine: Engine, name: str) -> None:
    with behind(engine, {}) as (endpoint, _):
        settings = Settings(table=name, region=A, endpoint_url=f"{endpoint}/{OUTSIDE}")
        ledger = Ledger(settings)
        first = ledger.add("c", 1)
        receipts = ledger.add_many([Change("c", 4, "k", first.delta.at), Change("c", 16)])
        assert ledger.apply(first.delta).outcome == "replayed"
        again = ledger.add_many([Change("c", 4, "k", first.delta.at), Change("c", 64)])
        outcomes = [receipt.outcome for receipt in [*receipts, *again] if not isinstance(receipt, Exception)]
        assert outcomes == ["recorded", "recorded", "replayed", "recorded"]
        assert Reader(settings).read("c").value == 85


def test_a_delete_of_another_item_than_was_named_fails_with_what_is_there(engine: Engine, name: str) -> None:
    def statement(change: str) -> dict[str, Any]:
        text = f'DELETE FROM "{name}" WHERE "pk" = ? AND "sk" = ? AND "change" = ?'
        parameters = [{"S": "p"}, {"S": "s"}, {"N": change}]
        returned = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        return {"Statement": text, "Parameters": parameters, **returned}

    with behind(engine, {}) as (endpoint, _):
        asked = client(endpoint)
        asked.put_item(TableName=name, Item=ITEM | {"change": {"N": "1"}})
        answer = asked.batch_execute_statement(Statements=[statement("2"), statement("1"), statement("1")])
    wrong, right, absent = answer["Responses"]
    assert (wrong["Error"]["Code"], wrong["Error"]["Item"]["change"]) == ("ConditionalCheckFailed", {"N": "1"})
    assert ("Error" in right, "Error" in absent) == (False, False)
