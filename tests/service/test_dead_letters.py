"""What the changes queue's function does with what it cannot add: poison goes at once, good changes never do."""

import base64
import io
import itertools
import json
from collections.abc import Iterator
from typing import Any, cast

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError

from lab.engines.ministack import Engine
from ledger import Ledger, Settings
from ledger.checks import to_datetime
from ledger.errors import GateLost, LedgerError, NotAllowed, OutcomeUnknown, SettingsMismatch, Throttled
from ledger.memory import MemoryTable
from ledger.message import time_text
from ledger.requests import PutMany, Request
from reader import Reader
from service import observe
from service.add_from_queue.dead_letters import MESSAGE_BYTES_MAX, DeadLetters
from service.add_from_queue.handler import AddFromQueue
from service.add_from_queue.waits import Waits
from service.observe import Watch
from tests.service.support import sqs

SETTINGS = Settings(table="counters", region="eu-west-1")
COUNTER = "stock:85123A"
NOW_MS = 1_291_200_000_000
NUMBERS = itertools.count()


def message(n: int, **changed: Any) -> str:
    said = {"counter": COUNTER, "change": 4**n, "idempotency_key": f"order/{n}", "at": "2010-12-01T08:26:00Z"}
    return json.dumps(said | changed)


def many(*bodies: str) -> str:
    return f'{{"changes": [{", ".join(bodies)}]}}'


def ahead(ms: int) -> str:
    return time_text(to_datetime(NOW_MS + 300_000 + ms))


BAD = message(9, region="mars-north-1")


class Sqs:
    """An SQS client that keeps what it is asked, or is down."""

    def __init__(self) -> None:
        self.buried: list[dict[str, Any]] = []
        self.waits: dict[str, int] = {}
        self.is_down = False

    def send_message(self, **asked: Any) -> dict[str, str]:
        assert asked.pop("QueueUrl") == "dlq"
        if self.is_down:
            raise EndpointConnectionError(endpoint_url="dlq")
        self.buried.append(asked)
        return {"MessageId": "x"}

    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        assert QueueUrl == "changes"
        assert 1 <= len(Entries) <= 10
        if self.is_down:
            raise EndpointConnectionError(endpoint_url="changes")
        self.waits |= {entry["ReceiptHandle"]: entry["VisibilityTimeout"] for entry in Entries}
        failed = [{"Id": entry["Id"], "Code": "ReceiptHandleIsInvalid"} for entry in Entries if "bad" in entry["Id"]]
        return {"Successful": [], "Failed": failed}


class Table(MemoryTable):
    """Fails the puts of a batch whose change is in `failing`."""

    def __init__(self) -> None:
        super().__init__()
        self.failing: dict[int, LedgerError] = {}

    def answer(self, request: Request, /) -> Any:
        if isinstance(request, PutMany):
            changes = [int(item["change"]["N"]) for item in request.items]
            return tuple(
                self.failing.get(change) or super(Table, self).answer(PutMany((item,)))[0]
                for change, item in zip(changes, request.items, strict=True)
            )
        return super().answer(request)


class World:
    def __init__(self) -> None:
        self.table, self.sqs, self.lines = Table(), Sqs(), io.StringIO()
        self.watch = Watch.here(f"dead-letters-{next(NUMBERS)}", self.lines)
        client = cast(Any, self.sqs)
        clock = lambda: NOW_MS  # noqa: E731
        self.handler = AddFromQueue(
            Ledger(SETTINGS, table=self.table, clock=clock),
            self.watch,
            pack=False,
            dead_letters=DeadLetters("dlq", client),
            waits=Waits("changes", client, jitter=lambda: 0.0),
            clock=clock,
        )

    def add(self, *bodies: str, receives: int = 1, **more: Any) -> list[int]:
        """The numbers of the messages that are reported as failed, the first being 0."""
        event = sqs(*bodies)
        for n, record in enumerate(event["Records"]):
            record |= {"receiptHandle": f"r{n}", "attributes": {"ApproximateReceiveCount": str(receives)}} | more
        failures = self.handler(event, None)["batchItemFailures"]
        return sorted(int(str(each["itemIdentifier"]).removeprefix("m")) - 1 for each in failures)

    @property
    def value(self) -> int:
        return Reader(SETTINGS, table=self.table).read(COUNTER).value

    @property
    def buried(self) -> list[tuple[str, str]]:
        why = (each["MessageAttributes"]["LedgerError"]["StringValue"] for each in self.sqs.buried)
        return list(zip((each["MessageBody"] for each in self.sqs.buried), why, strict=True))

    def logged(self, level: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.lines.getvalue().splitlines()]
        return [line for line in lines if line["level"] == level]


def test_poison_is_copied_at_once_with_what_was_wrong_and_acknowledged() -> None:
    world = World()
    world.add(message(0))
    bodies = ["not JSON", message(1), BAD, message(0, change=7)]
    assert world.add(*bodies) == []
    assert world.buried == [
        ("not JSON", "InvalidMessage"),
        (BAD, "InvalidInput"),
        (bodies[3], "TokenConflict"),
    ]
    assert (world.value, world.sqs.waits) == (1 + 4, {})
    told = [line for line in world.logged("WARNING") if line["message"].startswith("poison")]
    assert [(line["message_id"], line["error"]) for line in told] == [
        ("m1", "InvalidMessage"),
        ("m3", "InvalidInput"),
        ("m4", "TokenConflict"),
    ]
    assert world.logged("INFO")[-1]["buried"] == 3


def test_a_message_of_good_and_invalid_changes_goes_there_whole_and_a_redrive_counts_the_good_ones_once() -> None:
    world = World()
    mixed = many(message(0), BAD, message(1))
    assert world.add(mixed) == []
    assert [body for body, _ in world.buried] == [mixed]
    assert world.value == 1 + 4
    assert world.add(mixed, many(message(0), message(1), message(9))) == []
    assert world.value == 1 + 4 + 4**9


FAILURES = [Throttled("no"), OutcomeUnknown("no"), NotAllowed("no"), SettingsMismatch("no"), GateLost("no")]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_fifteen_minutes_of_table_trouble_bury_no_good_change(failure: LedgerError) -> None:
    world = World()
    world.table.failing = {1: failure, 4: failure}
    waited_s, receives = 0, 0
    while waited_s < 15 * 60:
        receives += 1
        mixed = many(message(1), BAD), many(BAD, message(1))  # whichever of the two comes first
        assert world.add(message(0), mixed[0], message(2), mixed[1], receives=receives) == [0, 1, 3]
        assert {world.sqs.waits[name] for name in ("r0", "r1", "r3")} == {min(900, 30 * 2 ** (receives - 1))}
        waited_s += world.sqs.waits["r0"]
    assert receives == 5  # of 600
    assert world.buried == []
    world.table.failing.clear()
    assert world.add(message(0), many(message(1), BAD)) == []
    assert [why for _, why in world.buried] == ["InvalidInput"]
    assert world.value == 1 + 4 + 16


def test_the_wait_has_an_end_and_is_not_the_same_for_all() -> None:
    world = World()
    drawn = iter((0.0, 0.5, 0.999))
    waits = Waits("changes", cast(Any, world.sqs), jitter=lambda: next(drawn))
    record = {"attributes": {"ApproximateReceiveCount": "599"}}
    assert waits.postpone([(record | {"receiptHandle": name}, None) for name in "abc"]) == []
    assert world.sqs.waits == {"a": 900, "b": 787, "c": 675}
    assert waits.postpone([(record | {"receiptHandle": f"{n}"}, n) for n in range(25)]) == []
    assert world.sqs.waits["24"] == 24


def test_a_wait_that_could_not_be_set_is_told_and_the_message_is_reported_all_the_same() -> None:
    world = World()
    world.table.failing = {1: Throttled("no")}
    world.sqs.is_down = True
    assert world.add(message(0), message(1)) == [0]
    (told,) = [line for line in world.logged("WARNING") if "wait" in line["message"]]
    assert "ChangeMessageVisibilityBatch failed" in told["why"]


def test_poison_whose_copy_is_not_confirmed_stays_and_comes_again() -> None:
    world = World()
    world.sqs.is_down = True
    assert world.add("not JSON", message(1)) == [0]
    (told,) = world.logged("ERROR")
    assert (told["message_id"], "SendMessage failed" in told["why"]) == ("m1", True)
    world.sqs.is_down = False
    assert world.add("not JSON") == []
    assert len(world.buried) == 1


@pytest.mark.parametrize(("ms", "wait_s"), [(1, 1), (1_001, 2), (900_000, 900)])
def test_a_change_a_little_ahead_of_the_clock_comes_again_when_its_time_is_there(ms: int, wait_s: int) -> None:
    world = World()
    early = many(message(0, at=ahead(ms)), message(1))
    assert world.add(early, message(2, at=ahead(0))) == [0]
    assert (world.sqs.waits, world.buried, world.value) == ({"r0": wait_s}, [], 4 + 16)


def test_a_change_far_ahead_of_the_clock_is_poison() -> None:
    world = World()
    assert world.add(message(0, at=ahead(900_001)), message(1, at="2999-01-01T00:00:00Z")) == []
    assert [why for _, why in world.buried] == ["InvalidTime", "InvalidTime"]
    assert world.watch.metrics.metric_set[observe.DELTAS_REFUSED]["Value"] == [2]


def test_a_copy_has_the_messages_own_attributes_and_the_error_as_far_as_there_is_room() -> None:
    world = World()
    text = {"dataType": "String", "stringValue": "abc", "stringListValues": [], "binaryListValues": []}
    raw = {"dataType": "Binary", "binaryValue": base64.b64encode(b"\0\1").decode()}
    world.add("poison", messageAttributes={"text": text, "raw": raw})
    assert world.sqs.buried[0]["MessageAttributes"] == {
        "text": {"DataType": "String", "StringValue": "abc"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\0\1"},
        "LedgerError": {"DataType": "String", "StringValue": "InvalidMessage"},
    }
    world.add("poison", messageAttributes={f"a{n}": text for n in range(10)})
    world.add("x" * MESSAGE_BYTES_MAX)
    assert all("LedgerError" not in each["MessageAttributes"] for each in world.sqs.buried[1:])


def test_on_the_engine_a_copy_is_there_and_the_message_waits(engine: Engine, table_names: Iterator[str]) -> None:
    client = boto3.client(
        "sqs", "eu-west-1", endpoint_url=engine.endpoint_url, aws_access_key_id="x", aws_secret_access_key="x"
    )
    name = next(table_names)
    urls = [client.create_queue(QueueName=f"{name}-{of}")["QueueUrl"] for of in ("changes", "dlq")]
    for body in ("poison", message(0), message(1)):
        client.send_message(QueueUrl=urls[0], MessageBody=body)
    received = client.receive_message(
        QueueUrl=urls[0], MaxNumberOfMessages=10, VisibilityTimeout=0, AttributeNames=["ApproximateReceiveCount"]
    )["Messages"]
    event = sqs(*(each["Body"] for each in received))
    for record, each in zip(event["Records"], received, strict=True):
        record |= {"receiptHandle": each["ReceiptHandle"], "attributes": each["Attributes"]}
    world = World()
    world.table.failing = {4: Throttled("no")}
    world.handler = AddFromQueue(
        Ledger(SETTINGS, table=world.table, clock=lambda: NOW_MS),
        world.watch,
        pack=False,
        dead_letters=DeadLetters(urls[1], client),
        waits=Waits(urls[0], client),
    )
    (failed,) = world.handler(event, None)["batchItemFailures"]
    assert event["Records"][int(str(failed["itemIdentifier"])[1:]) - 1]["body"] == message(1)
    (copy,) = client.receive_message(QueueUrl=urls[1], MessageAttributeNames=["All"])["Messages"]
    assert (copy["Body"], copy["MessageAttributes"]["LedgerError"]["StringValue"]) == ("poison", "InvalidMessage")
    seen = client.receive_message(QueueUrl=urls[0], MaxNumberOfMessages=10).get("Messages", [])
    assert message(1) not in [each["Body"] for each in seen]
