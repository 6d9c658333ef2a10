"""The entry points of all functions, as Lambda starts and calls them on one table; and what
answers their requests.
"""

import importlib
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from aws_lambda_powertools import Metrics
from aws_lambda_powertools.event_handler.http_resolver import MockLambdaContext as Context

from lab.engines.ministack import Engine
from ledger import Change
from ledger.client.message import dumps
from ledger.core.checks import to_ms
from ledger.core.values import Delta, Lane
from service.api.local import event_of
from service.jobs import Look, Verify
from service.messages import message_of
from tests.service.support import NOTHING, sqs, stream
from tests.world import A

FUNCTIONS = ("add_from_queue", "ring", "compact", "sweep", "api", "canary")
AT = datetime(2010, 12, 1, 8, 26, tzinfo=UTC)
SALES = [Change("stock:85123A", -k, f"536365/{k}", AT) for k in range(40)]


def forget_dimensions() -> None:
    """Those of a process, which Powertools keeps for all functions that it ever was."""
    Metrics().clear_default_dimensions()
    Metrics().clear_metrics()


@pytest.fixture(autouse=True)
def _leaves_no_dimensions() -> Iterator[None]:
    yield
    forget_dimensions()


def loaded(name: str) -> Any:
    """As in a process of its own."""
    forget_dimensions()
    return importlib.reload(importlib.import_module(f"service.{name}.main")).handler


@pytest.fixture
def handlers(
    engine: Engine, table_names: Iterator[str], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Each function's handler, from the environment alone."""
    table = next(table_names)
    engine.create_table(table, A)
    environ = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "test")
    environ |= dict.fromkeys(("AWS_REGION", "AWS_DEFAULT_REGION"), A)
    environ |= {"AWS_ENDPOINT_URL": engine.endpoint_url, "LEDGER_TABLE": table}
    environ |= {"LEDGER_STAGE": "test", "POWERTOOLS_SERVICE_NAME": "ledger"}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    sqs_client = boto3.client("sqs", endpoint_url=engine.endpoint_url)
    for name in ("WORK_QUEUE", "WORK_DLQ", "CHANGES_QUEUE", "CHANGES_DLQ"):
        url = sqs_client.create_queue(QueueName=f"{table}-{name}")["QueueUrl"]
        monkeypatch.setenv(f"LEDGER_{name}_URL", url)
    return {name: loaded(name) for name in FUNCTIONS}


def bodies(url: str) -> list[str]:
    """Of the messages that can be received from the queue of this variable."""
    client = boto3.client("sqs", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    answer = client.receive_message(QueueUrl=os.environ[url], MaxNumberOfMessages=10)
    return [message["Body"] for message in answer.get("Messages", ())]


def test_what_every_function_answers_is_json_as_lambda_asks_for(handlers: dict[str, Any]) -> None:
    def call(name: str, event: dict[str, Any]) -> Any:
        return json.loads(json.dumps(handlers[name](event, Context())))

    lane = Lane(A, 0, "stock:85123A")
    assert call("add_from_queue", sqs(*map(dumps, SALES))) == NOTHING
    came = stream(*(Delta(lane, f"0000000000{k:016d}", 1) for k in range(3)), made_ms=to_ms(AT))
    assert call("ring", came) == NOTHING
    assert call("compact", sqs(message_of(Look(lane)))) == NOTHING
    assert bodies("LEDGER_WORK_QUEUE_URL") != []  # what rang
    assert call("compact", sqs("no lane")) == NOTHING
    assert (bodies("LEDGER_WORK_DLQ_URL"), "no lane" in bodies("LEDGER_WORK_QUEUE_URL")) == (
        ["no lane"],
        False,
    )
    assert call("sweep", {}) is None
    assert call("compact", sqs(message_of(Verify(lane)))) == NOTHING
    answer = call("api", event_of("GET", "/counters?counter=stock:85123A", {}, None))
    said = json.loads(answer["body"])
    assert (said["value"], said["count"], said["pending"]) == (
        sum(sale.change for sale in SALES),
        len(SALES),
        0,
    )
    first, second = call("canary", {}), call("canary", {})
    assert (first | second, first["value"], second["value"], second["read"]) == (
        second,
        32,
        64,
        True,
    )
    assert (second["folded_ms"], second["lag_ms"] > 0) == (None, True)


def test_what_cannot_be_added_is_a_dead_letter_or_waits(
    handlers: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    client = boto3.client("sqs", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    url = os.environ["LEDGER_CHANGES_QUEUE_URL"]
    early = dumps(Change("stock:1", 1, "early", datetime.now(UTC) + timedelta(minutes=15)))
    for body in ("poison", early):
        client.send_message(QueueUrl=url, MessageBody=body)
    received = client.receive_message(
        QueueUrl=url,
        MaxNumberOfMessages=10,
        VisibilityTimeout=0,
        AttributeNames=["ApproximateReceiveCount"],
    )["Messages"]
    event = sqs(*(each["Body"] for each in received))
    for record, each in zip(event["Records"], received, strict=True):
        record |= {"receiptHandle": each["ReceiptHandle"], "attributes": each["Attributes"]}
    (failed,) = handlers["add_from_queue"](event, Context())["batchItemFailures"]
    assert event["Records"][int(failed["itemIdentifier"][1:]) - 1]["body"] == early
    assert bodies("LEDGER_CHANGES_DLQ_URL") == ["poison"]
    assert early not in bodies("LEDGER_CHANGES_QUEUE_URL")
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (metrics,) = [line for line in printed if "_aws" in line]
    assert (metrics["DeltasRefused"], metrics["stage"], metrics["service"]) == (
        [2.0],
        "test",
        "ledger",
    )


# Powertools leaves its files open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_page_to_try_it_is_not_served_in_production(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LEDGER_TABLE", "counters")
    monkeypatch.setenv("AWS_REGION", A)
    for stage, status in (("dev", 200), ("production", 404), (None, 404)):
        monkeypatch.delenv("LEDGER_STAGE", raising=False)
        if stage is not None:
            monkeypatch.setenv("LEDGER_STAGE", stage)
        answer = loaded("api")(event_of("GET", "/try-it?format=json", {}, None), Context())
        assert answer["statusCode"] == status
