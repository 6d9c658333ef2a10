"""`redrive`: what is said of dead letters, and how they go back, by SQS's own task or one by one."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lab.engines.ministack import Engine
from ledger.dynamo.client import CONFIG
from ledgerctl.call import Surroundings
from tests.ledgerctl.support import ENVIRON, NOW_MS, A, Said, ctl, signed_in

GOOD = '{"counter": "c", "change": 1, "idempotency_key": "k", "at": "2010-12-01T08:26:00Z"}'
REFUSED = {"LedgerError": {"DataType": "String", "StringValue": "InvalidInput"}}
STREAM = json.dumps({"DDBStreamBatchInfo": {"shardId": "s"}})
INVOCATION = json.dumps(
    {"requestContext": {"functionArn": "arn:aws:lambda:eu-west-1:1:function:shop-dev-sweep:$LATEST"}}
)


class Queues:
    """The queues of a stack on the engine."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.sqs: Any = signed_in().client("sqs", A, endpoint_url=engine.endpoint_url)
        self.name = name
        self.urls = {
            of: self.sqs.create_queue(QueueName=f"{name}-{of}")["QueueUrl"]
            for of in ("changes", "changes-dlq", "work", "work-dlq", "failed")
        }
        environ = ENVIRON | {"LEDGER_TABLE": name, "LEDGER_ENDPOINT_URL": engine.endpoint_url}
        self.world = Surroundings(environ=environ, session=lambda _: signed_in(), config=CONFIG, pause=lambda _: None)

    def put(self, of: str, *bodies: str, **attributes: Any) -> None:
        for body in bodies:
            self.sqs.send_message(QueueUrl=self.urls[of], MessageBody=body, MessageAttributes=attributes)

    def __call__(self, *arguments: str, code: int = 0) -> Said:
        said = ctl(self.world, "redrive", *arguments)
        assert said.code == code, said
        return said

    def bodies(self, of: str) -> list[str]:
        received = self.sqs.receive_message(QueueUrl=self.urls[of], MaxNumberOfMessages=10, VisibilityTimeout=0)
        return sorted(each["Body"] for each in received.get("Messages", []))


@pytest.fixture
def queues(engine: Engine, table_names: Iterator[str]) -> Queues:
    return Queues(engine, next(table_names))


def test_what_is_there_is_said_by_kind_and_a_dry_run_moves_nothing(queues: Queues) -> None:
    queues.put("changes-dlq", GOOD, GOOD, "poison")
    queues.put("changes-dlq", GOOD, **REFUSED)
    said = queues("changes", "--dry-run")
    assert (
        said.out.splitlines()
        == [
            f"{queues.name}-changes-dlq: 4 messages",
            "  2 changes that the table did not take",
            "  1 InvalidMessage: no message of ours, and will be refused",
            "  1 InvalidInput: refused, and will be again unless what refused it has changed",
        ]
        or len(said.out.splitlines()) == 4
    )
    assert len(queues.bodies("changes-dlq")) == 4
    assert queues.bodies("changes") == []


def test_dead_letters_go_back_one_by_one_where_there_is_no_task(queues: Queues) -> None:
    queues.put("changes-dlq", GOOD, **REFUSED)
    queues.put("changes-dlq", *(f"poison {n}" for n in range(11)))
    said = queues("changes")
    assert said.out.splitlines()[-1] == f"moved 12 messages to {queues.name}-changes"
    assert queues.bodies("changes-dlq") == []
    received = queues.sqs.receive_message(
        QueueUrl=queues.urls["changes"], MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    )["Messages"]
    assert len(received) == 10
    (document,) = queues("changes", "--json").documents
    assert document == {
        "queue": f"{queues.name}-changes-dlq",
        "messages": 0,
        "looked_at": 0,
        "kinds": {},
        "moved": 0,
    }


def test_the_lanes_of_the_work_queue_go_back_and_notices_stay(queues: Queues) -> None:
    queues.put("work-dlq", '{"lane": "eu-west-1#0#c"}', '{"lane": "x"}', "[]")
    queues.put("failed", STREAM, INVOCATION, "{}")
    (work,) = queues("work", "--json").documents
    assert (work["kinds"], work["moved"]) == ({"lane of eu-west-1": 1, "no message of ours": 2}, 3)
    assert len(queues.bodies("work")) == 3
    failed = queues("failed")
    for line in ("1 batch of the stream that was given up", "1 invocation of shop-dev-sweep that failed"):
        assert f"  {line}" in failed.out.splitlines()
    assert "Nothing of it is sent anywhere" in failed.err
    assert len(queues.bodies("failed")) == 3


def test_a_stack_that_is_not_there_is_told(queues: Queues) -> None:
    said = queues("changes", "--stack", "another-dev", code=2)
    assert "There is no queue another-dev-changes-dlq, or no another-dev-changes, in eu-west-1." in said.err
    assert "--stack NAME-STAGE" in said.err


class Sqs:
    """An SQS client with a move task of some steps."""

    def __init__(self, *tasks: dict[str, Any], messages: int = 3, failing: dict[str, str] | None = None) -> None:
        self.tasks, self.left, self.failing = list(tasks), messages, failing or {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.moved = 0

    def __getattr__(self, operation: str) -> Any:
        def call(**asked: Any) -> Any:
            self.asked.append((operation, asked))
            if operation in self.failing:
                raise ClientError({"Error": {"Code": self.failing[operation], "Message": "said the test"}}, operation)
            return getattr(self, f"_{operation}")(**asked)

        return call

    def _get_queue_url(self, *, QueueName: str) -> Any:
        return {"QueueUrl": QueueName}

    def _get_queue_attributes(self, *, QueueUrl: str, AttributeNames: list[str]) -> Any:
        return {"Attributes": {AttributeNames[0]: "3" if "Number" in AttributeNames[0] else f"arn:{QueueUrl}"}}

    def _receive_message(self, **_: Any) -> Any:
        some, self.left = min(self.left, 10), self.left - min(self.left, 10)
        sent = str(NOW_MS - 1 if some < 10 else NOW_MS)
        one = {"Body": GOOD, "ReceiptHandle": "r", "Attributes": {"SentTimestamp": sent}}
        return {"Messages": [one] * some}

    def _change_message_visibility_batch(self, **asked: Any) -> Any:
        self.left += len(asked["Entries"]) if self.moved == 0 else 0
        return {}

    def _start_message_move_task(self, **_: Any) -> Any:
        return {"TaskHandle": "t"}

    def _list_message_move_tasks(self, **_: Any) -> Any:
        return {"Results": [self.tasks.pop(0)]}

    def _send_message_batch(self, *, QueueUrl: str, Entries: list[Any]) -> Any:
        self.moved += 1
        return {"Successful": [{"Id": "0"}], "Failed": [{"Id": "1", "Code": "InternalError"}]}

    def _delete_message(self, **_: Any) -> Any:
        return {}


def redriven(sqs: Sqs, *options: str) -> Said:
    class Session:
        region_name = A

        def client(self, *_: Any, **__: Any) -> Any:
            return sqs

    session: Any = Session()
    world = Surroundings(environ=ENVIRON, session=lambda _: session, clock=lambda: NOW_MS, pause=lambda _: None)
    return ctl(world, "redrive", "changes", "--stack", "shop-prod", *options)


def task(status: str, moved: int, **more: Any) -> dict[str, Any]:
    return {"Status": status, "ApproximateNumberOfMessagesMoved": moved, **more}


def test_sqs_moves_them_to_the_queue_that_is_named_where_it_has_a_task() -> None:
    sqs = Sqs(task("RUNNING", 1), task("COMPLETED", 3))
    said = redriven(sqs)
    assert (said.code, said.out.splitlines()[-1]) == (0, "moved 3 messages to shop-prod-changes")
    (started,) = [asked for operation, asked in sqs.asked if operation == "start_message_move_task"]
    assert started == {"SourceArn": "arn:shop-prod-changes-dlq", "DestinationArn": "arn:shop-prod-changes"}
    assert not [operation for operation, _ in sqs.asked if operation == "send_message_batch"]


def test_what_was_moved_is_said_on_every_failure() -> None:
    said = redriven(Sqs(task("FAILED", 2, FailureReason="AWS said so")))
    assert (said.code, "FAILED, AWS said so. Moved: 2." in said.err) == (3, True)
    said = redriven(Sqs(failing={"start_message_move_task": "AWS.SimpleQueueService.AccessDenied"}))
    assert (said.code, "Moved so far: 0." in said.err, "sqs:GetQueueUrl" in said.err) == (3, True, True)
    said = redriven(Sqs(failing={"start_message_move_task": "AWS.SimpleQueueService.UnsupportedOperation"}))
    assert (said.code, "SQS refused 1 of the messages (InternalError). Moved: 1." in said.err) == (3, True)
    said = redriven(Sqs(failing={"receive_message": "ServiceUnavailable"}))
    assert (said.code, "hidden for 60 s" in said.err) == (3, True)
    sqs = Sqs()
    sqs.tasks = [task("RUNNING", 1)]
    sqs._list_message_move_tasks = interrupt  # type: ignore[method-assign]
    said = redriven(sqs)
    assert (said.code, "Interrupted. Moved so far: 0." in said.err, "list-message-move-tasks" in said.err) == (
        130,
        True,
        True,
    )


def interrupt(**_: Any) -> Any:
    raise KeyboardInterrupt


def test_what_comes_to_the_dead_letters_meanwhile_is_not_moved_again() -> None:
    sqs = Sqs(messages=10, failing={"start_message_move_task": "InvalidAction"})
    said = redriven(sqs)
    assert (said.code, said.out.splitlines()[-1]) == (0, "moved 0 messages to shop-prod-changes")
    assert not [operation for operation, _ in sqs.asked if operation == "send_message_batch"]
