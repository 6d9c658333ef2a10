"""`redrive`: messages of a dead-letter queue back to their queue, after what made them fail is mended.

Rule 1: SQS moves them, by its own task, with the destination named: poison was sent to the dead letters by a function,
so SQS does not know which queue it came from.
Rule 2: What was moved so far is in the message of every failure.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer
from botocore.exceptions import BotoCoreError, ClientError

from ledger.failures import code_of
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import TABLE, command
from ledgerctl.failures import INTERRUPTED, NO_ANSWER, Wrong

POLL_S = 2.0
MISSING = ("QueueDoesNotExist", "NonExistentQueue")
AGAIN = "Run it again: a change counts once."
NEEDS = (
    "It needs sqs:GetQueueUrl, GetQueueAttributes, ReceiveMessage, DeleteMessage, StartMessageMoveTask and "
    "ListMessageMoveTasks there, and sqs:SendMessage on the other queue."
)
KEPT = (
    "Nothing of it is sent anywhere: these are notices. A sweep runs again by itself, and finds the lanes of a batch "
    "of the stream that was given up, in a day (docs/operations.md#failed-an-event-was-given-up)."
)


class Which(StrEnum):
    changes = "changes"
    work = "work"
    failed = "failed"


@command("redrive", TABLE)
def redrive(
    call: Call,
    which: Annotated[Which, typer.Argument(help="Whose dead letters; of `failed` it only says how many there are.")],
    stack: Annotated[str | None, typer.Option(help="The service's name and stage; else the table's name.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many there are.")] = False,
) -> None:
    """Send the dead letters of a queue back to it, once what made them fail is mended."""
    target = f"{stack or call.settings.table}-{which}"
    source = target if which is Which.failed else f"{target}-dlq"
    moved = 0
    try:
        sqs = call.session.client(
            "sqs",
            region_name=call.settings.region,
            endpoint_url=call.settings.endpoint_url,
            config=call.surroundings.config,
        )
        of_source, of_target = (_attributes(sqs, name) for name in (source, target))
        count = int(of_source["ApproximateNumberOfMessages"])
        if not call.json:
            call.say(f"{source}: {show.counted(count, 'message')}")
        if count and which is Which.failed:
            call.note(KEPT, None)
        elif count and not dry_run:
            for moved in moving(call, sqs, of_source["QueueArn"], of_target["QueueArn"]):
                call.note(f"moved so far: {moved:,}")
            if not call.json:
                call.say(f"moved {show.counted(moved, 'message')} to {target}", style="green")
    except (ClientError, BotoCoreError, KeyboardInterrupt) as failure:
        queues = f"{source}, or no {target}, in {call.settings.region}"
        raise _wrong(failure, queues, f" Moved so far: {moved:,}.") from None
    if call.json:
        call.document({"queue": source, "messages": count, "moved": moved})


def _attributes(sqs: Any, name: str) -> dict[str, str]:
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    wanted = ["QueueArn", "ApproximateNumberOfMessages"]
    found: dict[str, str] = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=wanted)["Attributes"]
    return found


def moving(call: Call, sqs: Any, source: str, target: str) -> Iterator[int]:
    """How many messages SQS has moved, now and then, until it is done. Raises Wrong when it ends before."""
    sqs.start_message_move_task(SourceArn=source, DestinationArn=target)
    while True:
        (task,) = sqs.list_message_move_tasks(SourceArn=source, MaxResults=1)["Results"]
        moved: int = task.get("ApproximateNumberOfMessagesMoved", 0)
        yield moved
        if task["Status"] == "COMPLETED":
            return
        if task["Status"] not in ("RUNNING", "CANCELLING"):
            why = task.get("FailureReason", "SQS does not say why")
            raise Wrong("NotMoved", f"SQS ended the move: {task['Status']}, {why}. Moved: {moved:,}.", AGAIN, NO_ANSWER)
        call.surroundings.pause(POLL_S)


def _wrong(failure: BaseException, queues: str, done: str) -> Wrong:
    """What a failure means. A task that was begun goes on by itself."""
    if isinstance(failure, KeyboardInterrupt):
        remedy = "A move that SQS began goes on: `aws sqs list-message-move-tasks` shows it. Or run it again."
        return Wrong("Interrupted", f"Interrupted.{done}", remedy, INTERRUPTED)
    code = code_of(failure)
    if code.endswith(MISSING):
        return Wrong("NoQueue", f"There is no queue {queues}.{done}", "--stack NAME-STAGE names the deployment.")
    refused = "AccessDenied" in code
    kind, remedy = ("NotAllowed", NEEDS) if refused else ("QueueFailed", AGAIN)
    return Wrong(kind, f"{failure}.{done}", remedy, NO_ANSWER)
