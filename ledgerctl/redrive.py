"""`redrive`: messages of a dead-letter queue back to their queue, after what made them fail is mended.

Rule 1: SQS moves them, by its own task, with the destination named: poison was sent to the dead letters by a function,
so SQS does not know which queue it came from.
Rule 2: What was moved so far is in the message of every failure.
"""

from enum import StrEnum
from typing import Annotated, Any

import typer
from botocore.exceptions import BotoCoreError, ClientError

from ledger.dynamo.failures import code_of
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import command
from ledgerctl.failures import INTERRUPTED, NO_ANSWER, Wrong

POLL_S = 2.0
AGAIN = "Run it again: a change counts once."
NEEDS = (
    "It needs sqs:GetQueueUrl, GetQueueAttributes, ReceiveMessage, DeleteMessage, StartMessageMoveTask and "
    "ListMessageMoveTasks there, and sqs:SendMessage on the other queue."
)
GOES_ON = "A move that SQS began goes on: `aws sqs list-message-move-tasks` shows it. Or run it again."
KEPT = (
    "Nothing of it is sent anywhere: these are notices. A sweep runs again by itself, and finds the lanes of a batch "
    "of the stream that was given up, in a day (docs/operations/compactor.md#work-dlq)."
)
Which = StrEnum("Which", ["changes", "work", "failed"])


@command("redrive")
def redrive(
    call: Call,
    which: Annotated[Which, typer.Argument(help="Whose dead letters; of `failed` it only says how many there are.")],
    stack: Annotated[str | None, typer.Option(help="The service's name and stage; else the table's name.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many there are.")] = False,
) -> None:
    """Send the dead letters of a queue back to it, once what made them fail is mended."""
    target = f"{stack or call.settings.table}-{which}"
    source, moved = target if which == "failed" else f"{target}-dlq", 0
    try:
        sqs = call.aws("sqs", call.settings.region)
        wanted = ["QueueArn", "ApproximateNumberOfMessages"]
        urls = [sqs.get_queue_url(QueueName=name)["QueueUrl"] for name in (source, target)]
        ours, theirs = (sqs.get_queue_attributes(QueueUrl=url, AttributeNames=wanted)["Attributes"] for url in urls)
        count = int(ours["ApproximateNumberOfMessages"])
        call.say(f"{source}: {show.counted(count, 'message')}")
        if count and which == "failed":
            call.note(KEPT, None)
        elif count and not dry_run:
            sqs.start_message_move_task(SourceArn=ours["QueueArn"], DestinationArn=theirs["QueueArn"])
            task: Any = {"Status": "RUNNING"}
            while task["Status"] in ("RUNNING", "CANCELLING"):
                call.surroundings.pause(POLL_S)
                (task,) = sqs.list_message_move_tasks(SourceArn=ours["QueueArn"], MaxResults=1)["Results"]
                moved = task.get("ApproximateNumberOfMessagesMoved", 0)
                call.note(f"moved so far: {moved:,}")
            if task["Status"] != "COMPLETED":
                why = f"{task['Status']}, {task.get('FailureReason', 'SQS does not say why')}"
                raise Wrong("NotMoved", f"SQS ended the move: {why}. Moved: {moved:,}.", AGAIN, NO_ANSWER)
            call.say(f"moved {show.counted(moved, 'message')} to {target}", style="green")
    except KeyboardInterrupt:
        raise Wrong("Interrupted", f"Interrupted. Moved so far: {moved:,}.", GOES_ON, INTERRUPTED) from None
    except (ClientError, BotoCoreError) as failure:
        code, done = code_of(failure), f"Moved so far: {moved:,}."
        if code.endswith(("QueueDoesNotExist", "NonExistentQueue")):
            missing = f"There is no queue {source}, or no {target}, in {call.settings.region}. {done}"
            raise Wrong("NoQueue", missing, "--stack NAME-STAGE names the deployment.") from None
        kind, remedy = ("NotAllowed", NEEDS) if "AccessDenied" in code else ("QueueFailed", AGAIN)
        raise Wrong(kind, f"{failure}. {done}", remedy, NO_ANSWER) from None
    call.document({"queue": source, "messages": count, "moved": moved})
