"""`redrive`: moves the messages of a dead-letter queue back to their queue, after you have mended
why they failed.

Rule 1: SQS moves them by its own task. The task names the destination, because a function sent the
poison to the dead letters, so SQS does not know which queue it came from.
Rule 2: The message of every failure says how many were moved so far.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer
from botocore.exceptions import BotoCoreError, ClientError

from ledger.core.errors import PAGES
from ledger.tables.failures import code_of
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import command
from ledgerctl.failures import INTERRUPTED, NO_ANSWER, Wrong, of_credentials

POLL_S = 2.0
AGAIN = "Run it again: a change counts once."
NEEDS = (
    "It needs sqs:GetQueueUrl, GetQueueAttributes, ReceiveMessage, DeleteMessage, "
    "StartMessageMoveTask and ListMessageMoveTasks there, and sqs:SendMessage on the other queue."
)
GOES_ON = (
    "A move that SQS began goes on: `aws sqs list-message-move-tasks` shows it. Or run it again."
)
KEPT = (
    "Nothing was moved: these are notices. The sweep runs again by itself, and within a day it "
    "finds the lanes of a stream batch that Lambda gave up "
    f"({PAGES}docs/operations/compactor.md#work-dlq)."
)
Which = StrEnum("Which", ["changes", "work", "failed"])


def _moving(call: Call, sqs: Any, source: str, target: str) -> Iterator[int]:
    """Move all messages. Yields how many have moved, at each look. Raises Wrong."""
    sqs.start_message_move_task(SourceArn=source, DestinationArn=target)
    task: Any = {"Status": "RUNNING"}
    moved = 0
    while task["Status"] in ("RUNNING", "CANCELLING"):
        call.surroundings.pause(POLL_S)
        (task,) = sqs.list_message_move_tasks(SourceArn=source, MaxResults=1)["Results"]
        moved = task.get("ApproximateNumberOfMessagesMoved", 0)
        yield moved
    if task["Status"] != "COMPLETED":
        why = f"{task['Status']}, {task.get('FailureReason', 'SQS does not say why')}"
        raise Wrong("NotMoved", f"SQS ended the move: {why}. Moved: {moved:,}.", AGAIN, NO_ANSWER)


Queue = Annotated[
    Which, typer.Argument(help="The queue whose dead letters to move; `failed` is only counted.")
]
Stack = Annotated[
    str | None, typer.Option(help="The service's NAME-STAGE; default: the table's name.")
]
OnlyCount = Annotated[bool, typer.Option("--dry-run", help="Only count the messages.")]


@command("redrive")
def redrive(
    call: Call,
    which: Queue,
    stack: Stack = None,
    dry_run: OnlyCount = False,
) -> None:
    """Send the dead letters of a queue back to it, after you removed the cause of their failure."""
    target = f"{stack or call.settings.table}-{which}"
    source, moved = target if which == "failed" else f"{target}-dlq", 0
    try:
        sqs = call.aws("sqs", call.settings.region)
        wanted = ["QueueArn", "ApproximateNumberOfMessages"]
        urls = [sqs.get_queue_url(QueueName=name)["QueueUrl"] for name in (source, target)]
        ours, theirs = (
            sqs.get_queue_attributes(QueueUrl=url, AttributeNames=wanted)["Attributes"]
            for url in urls
        )
        count = int(ours["ApproximateNumberOfMessages"])
        call.say(f"{source}: {show.counted(count, 'message')}")
        if count and which == "failed":
            call.note(KEPT, None)
        elif count and not dry_run:
            for moved in _moving(call, sqs, ours["QueueArn"], theirs["QueueArn"]):
                call.note(f"moved so far: {moved:,}")
            call.say(f"moved {show.counted(moved, 'message')} to {target}", style="green")
    except KeyboardInterrupt:
        raise Wrong(
            "Interrupted", f"Interrupted. Moved so far: {moved:,}.", GOES_ON, INTERRUPTED
        ) from None
    except (ClientError, BotoCoreError) as failure:
        code, done = code_of(failure), f"Moved so far: {moved:,}."
        if code.endswith(("QueueDoesNotExist", "NonExistentQueue")):
            missing = (
                f"There is no queue {source}, or no {target}, in {call.settings.region}. {done}"
            )
            raise Wrong("NoQueue", missing, "--stack NAME-STAGE names the deployment.") from None
        kind, remedy = ("NotAllowed", NEEDS) if "AccessDenied" in code else ("QueueFailed", AGAIN)
        remedy = of_credentials(failure) or remedy
        raise Wrong(kind, f"{failure}. {done}", remedy, NO_ANSWER) from None
    call.document({"queue": source, "messages": count, "moved": moved})
