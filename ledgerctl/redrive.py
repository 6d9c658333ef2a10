"""`redrive`: messages of a dead-letter queue back to their queue, after what made them fail is mended.

Rule 1: What is in there is said first, by kind; `--dry-run` says no more.
Rule 2: By SQS's own task with its destination named, because poison was sent there by a function, and so came from no
queue. An endpoint without that task: message by message, received, sent, deleted; a crash in between makes two of one,
and each change counts once.
Rule 3: What came to the dead letters after the beginning is not moved again, so poison does not go round for ever.
Rule 4: What was moved is said on every failure.
"""

import json
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from botocore.exceptions import BotoCoreError, ClientError

from ledger.dynamo.failures import code_of
from ledger.errors import InvalidInput, LedgerError
from ledger.message import loads_many
from ledger.values import Lane
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import TABLE, command
from ledgerctl.failures import INTERRUPTED, NO_ANSWER, Wrong

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

LOOK_MAX = 1_000
"""Messages that are looked at before they are moved."""

LOOK_S, MOVE_S, POLL_S = 60, 60, 2.0
BATCH = 10
MISSING = ("QueueDoesNotExist", "NonExistentQueue")
NO_TASK = ("UnsupportedOperation", "InvalidAction", "UnknownOperation", "NotImplemented")


class Which(StrEnum):
    changes = "changes"
    work = "work"
    failed = "failed"


KEPT = (
    "Nothing of it is sent anywhere: these are notices. A sweep runs again by itself, and finds the lanes of a batch "
    "of the stream that was given up, in a day (docs/operations.md#failed-an-event-was-given-up)."
)


@command("redrive", TABLE)
def redrive(
    call: Call,
    which: Annotated[Which, typer.Argument(help="Whose dead letters; of `failed` it only says what is there.")],
    stack: Annotated[str | None, typer.Option(help="The service's name and stage; else the table's name.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is there.")] = False,
) -> None:
    """Send the dead letters of a queue back to it, once what made them fail is mended."""
    queues = Queues(call, stack or call.settings.table, which)
    kinds, seen, count = queues.look()
    source = queues.source
    moved = 0
    if not call.json:
        call.say(
            f"{source}: {show.counted(count, 'message')}{f', of which {seen:,} were looked at' if seen < count else ''}"
        )
        for kind, number in kinds.most_common():
            call.say(f"  {number:,} {kind}")
    if count and which is Which.failed:
        call.note(KEPT, None)
    elif count and not dry_run:
        try:
            for so_far in queues.move():
                moved = so_far
        except (ClientError, BotoCoreError, KeyboardInterrupt) as failure:
            raise queues.failed(failure, f" Moved so far: {moved:,}.") from None
        if not call.json:
            call.say(f"moved {show.counted(moved, 'message')} to {queues.target}", style="green")
    if call.json:
        call.document({"queue": source, "messages": count, "looked_at": seen, "kinds": dict(kinds), "moved": moved})


def kind_of(which: Which, message: Any) -> str:
    """What a dead letter is, in words that are the same for all of its kind."""
    body = str(message.get("Body", ""))
    if which is Which.changes:
        why = message.get("MessageAttributes", {}).get("LedgerError", {}).get("StringValue")
        if why:
            return f"{why}: refused, and will be again unless what refused it has changed"
        try:
            loads_many(body)
        except LedgerError as error:
            return f"{type(error).__name__}: no message of ours, and will be refused"
        return "changes that the table did not take"
    try:
        said: Any = json.loads(body)
        if which is Which.work:
            return f"lane of {Lane.parse(said['lane']).region}"
        if "DDBStreamBatchInfo" in said:
            return "batch of the stream that was given up"
        return f"invocation of {str(said['requestContext']['functionArn']).split(':')[6]} that failed"
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, InvalidInput):
        return "no message of ours"


class Queues:
    """A dead-letter queue and the one that it is of."""

    def __init__(self, call: Call, stack: str, which: Which) -> None:
        self._call, self._which = call, which
        self.target = f"{stack}-{which}"
        self.source = self.target if which is Which.failed else f"{self.target}-dlq"
        try:
            self._sqs: SQSClient = call.session.client(
                "sqs",
                region_name=call.settings.region,
                endpoint_url=call.settings.endpoint_url,
                config=call.surroundings.config,
            )
            self._from = self._sqs.get_queue_url(QueueName=self.source)["QueueUrl"]
            self._to = self._sqs.get_queue_url(QueueName=self.target)["QueueUrl"]
        except (ClientError, BotoCoreError) as failure:
            raise self.failed(failure) from None

    def look(self) -> tuple[Counter[str], int, int]:
        """(how many of each kind, how many were looked at, how many there are about). They stay visible."""
        kinds: Counter[str] = Counter()
        handles: list[str] = []
        try:
            while len(handles) < LOOK_MAX and (messages := self._receive(LOOK_S)):
                kinds.update(kind_of(self._which, message) for message in messages)
                handles += [message["ReceiptHandle"] for message in messages]
            self._show(handles)
            return kinds, len(handles), max(len(handles), int(self._attribute(self._from, COUNT)))
        except (ClientError, BotoCoreError, KeyboardInterrupt) as failure:
            raise self.failed(failure, f" Those that were looked at are hidden for {LOOK_S} s.") from None

    def move(self) -> Iterator[int]:
        """How many were moved, now and then."""
        source, target = (self._attribute(url, "QueueArn") for url in (self._from, self._to))
        try:
            self._sqs.start_message_move_task(SourceArn=source, DestinationArn=target)
        except ClientError as failure:
            if not code_of(failure).endswith(NO_TASK):
                raise
            yield from self._one_by_one()
            return
        while True:
            (task,) = self._sqs.list_message_move_tasks(SourceArn=source, MaxResults=1)["Results"]
            yield task.get("ApproximateNumberOfMessagesMoved", 0)
            if task["Status"] == "COMPLETED":
                return
            if task["Status"] not in ("RUNNING", "CANCELLING"):
                why = task.get("FailureReason", "SQS does not say why")
                moved = task.get("ApproximateNumberOfMessagesMoved", 0)
                message = f"SQS ended the move: {task['Status']}, {why}. Moved: {moved:,}."
                raise Wrong("NotMoved", message, "Run it again: a change counts once.", NO_ANSWER)
            self._call.surroundings.pause(POLL_S)

    def _one_by_one(self) -> Iterator[int]:
        began_ms, moved = self._call.surroundings.clock(), 0
        later: list[str] = []
        while messages := self._receive(MOVE_S):
            old = [each for each in messages if int(each["Attributes"]["SentTimestamp"]) < began_ms]
            later += [each["ReceiptHandle"] for each in messages if each not in old]
            entries: list[Any] = [
                {"Id": str(n), "MessageBody": each["Body"], "MessageAttributes": each.get("MessageAttributes", {})}
                for n, each in enumerate(old)
            ]
            answer: Any = self._sqs.send_message_batch(QueueUrl=self._to, Entries=entries) if entries else {}
            sent = [old[int(each["Id"])] for each in answer.get("Successful", [])]
            for each in sent:
                self._sqs.delete_message(QueueUrl=self._from, ReceiptHandle=each["ReceiptHandle"])
            moved += len(sent)
            yield moved
            if refused := answer.get("Failed", []):
                message = f"SQS refused {len(refused)} of the messages ({refused[0]['Code']}). Moved: {moved:,}."
                raise Wrong("NotMoved", message, "Run it again: a change counts once.", NO_ANSWER)
        self._show(later)

    def failed(self, failure: BaseException, done: str = "") -> Wrong:
        """What is told of a failure. A task that was begun goes on by itself."""
        if isinstance(failure, KeyboardInterrupt):
            remedy = "A move that SQS began goes on: `aws sqs list-message-move-tasks` shows it. Or run it again."
            return Wrong("Interrupted", f"Interrupted.{done}", remedy, INTERRUPTED)
        code = code_of(failure)
        if code.endswith(MISSING):
            message = f"There is no queue {self.source}, or no {self.target}, in {self._call.settings.region}.{done}"
            return Wrong("NoQueue", message, "--stack NAME-STAGE is how the deployment is called.")
        remedy = (
            "It needs sqs:GetQueueUrl, GetQueueAttributes, ReceiveMessage, ChangeMessageVisibility, DeleteMessage, "
        )
        remedy += "StartMessageMoveTask and ListMessageMoveTasks there, and sqs:SendMessage on the other queue."
        if "AccessDenied" in code:
            return Wrong("NotAllowed", f"{failure}.{done}", remedy, NO_ANSWER)
        return Wrong("QueueFailed", f"{failure}.{done}", "Run it again: a change counts once.", NO_ANSWER)

    def _receive(self, hidden_s: int) -> list[Any]:
        answer = self._sqs.receive_message(
            QueueUrl=self._from,
            MaxNumberOfMessages=BATCH,
            VisibilityTimeout=hidden_s,
            WaitTimeSeconds=1,
            AttributeNames=["SentTimestamp"],
            MessageAttributeNames=["All"],
        )
        return list(answer.get("Messages", []))

    def _show(self, handles: list[str]) -> None:
        """Let messages be received again."""
        for start in range(0, len(handles), BATCH):
            entries: list[Any] = [
                {"Id": str(n), "ReceiptHandle": handle, "VisibilityTimeout": 0}
                for n, handle in enumerate(handles[start : start + BATCH])
            ]
            self._sqs.change_message_visibility_batch(QueueUrl=self._from, Entries=entries)

    def _attribute(self, url: str, name: Any) -> str:
        return self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name]


COUNT = "ApproximateNumberOfMessages"
