"""`redrive`: dead letters go back by SQS's own task, which is shown until it is done."""

from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import NoCredentialsError

from tests.ledgerctl.support import Said, aws, ctl, refusal


@dataclass
class Sqs:
    """SQS with some messages, and a move task of some steps (status, moved); an operation may
    fail.
    """

    tasks: tuple[tuple[str, int], ...] = ()
    messages: int = 3
    failing: dict[str, str | BaseException] = field(default_factory=dict)
    started: list[dict[str, Any]] = field(default_factory=list)
    looks: int = 0

    def __call__(self, operation: str, asked: Any) -> tuple[int, Any]:
        failure = self.failing.get(operation)
        if isinstance(failure, BaseException):
            raise failure
        if failure is not None:
            return refusal(failure)
        if operation == "GetQueueUrl":
            return 200, {"QueueUrl": asked["QueueName"]}
        if operation == "GetQueueAttributes":
            counts = {"ApproximateNumberOfMessages": str(self.messages)}
            return 200, {"Attributes": {"QueueArn": f"arn:{asked['QueueUrl']}", **counts}}
        if operation == "StartMessageMoveTask":
            self.started.append(asked)
            return 200, {"TaskHandle": "x"}
        status, moved = self.tasks[self.looks]
        self.looks += 1
        why = {"FailureReason": "AWS said so"} if status == "FAILED" else {}
        return 200, {
            "Results": [{"Status": status, "ApproximateNumberOfMessagesMoved": moved, **why}]
        }


def redriven(sqs: Sqs, *options: str) -> Said:
    return ctl(aws(sqs), "redrive", *(options or ("changes",)), "--stack", "shop-prod")


def test_dead_letters_move_to_the_named_queue_but_in_no_dry_run() -> None:
    sqs = Sqs((("RUNNING", 1), ("COMPLETED", 3)))
    said = redriven(sqs)
    assert (said.code, said.out) == (
        0,
        "shop-prod-changes-dlq: 3 messages\nmoved 3 messages to shop-prod-changes\n",
    )
    assert said.err.splitlines() == ["moved so far: 1", "moved so far: 3"]
    assert sqs.started == [
        {"SourceArn": "arn:shop-prod-changes-dlq", "DestinationArn": "arn:shop-prod-changes"}
    ]
    (document,) = redriven(Sqs((("COMPLETED", 3),)), "work", "--json").documents
    assert document == {"queue": "shop-prod-work-dlq", "messages": 3, "moved": 3}
    for options, messages, says in (
        (("changes", "--dry-run"), 3, "shop-prod-changes-dlq: 3 messages"),
        (("work",), 0, "shop-prod-work-dlq: 0 messages"),
        (("failed",), 3, "shop-prod-failed: 3 messages"),
    ):
        sqs = Sqs(messages=messages)
        said = redriven(sqs, *options)
        assert (said.code, said.out, sqs.started) == (0, f"{says}\n", [])
        assert ("these are notices" in said.err) == (options == ("failed",))


def test_every_failure_says_what_was_moved() -> None:
    missing = (
        "There is no queue shop-prod-changes-dlq, or no shop-prod-changes, in eu-west-1. "
        "Moved so far: 0. --stack"
    )
    for sqs, code, words in (
        (Sqs((("RUNNING", 1), ("FAILED", 2))), 3, "FAILED, AWS said so. Moved: 2."),
        (Sqs(failing={"StartMessageMoveTask": "AccessDenied"}), 3, "sqs:GetQueueUrl"),
        (Sqs(failing={"StartMessageMoveTask": "UnsupportedOperation"}), 3, "UnsupportedOperation"),
        (Sqs(failing={"GetQueueUrl": "ExpiredToken"}), 3, "Moved so far: 0. Sign in again"),
        (
            Sqs(failing={"GetQueueUrl": NoCredentialsError()}),
            3,
            "Moved so far: 0. Give credentials: --profile",
        ),
        (
            Sqs(failing={"GetQueueAttributes": "Overloaded"}),
            3,
            "Moved so far: 0. Run it again: a change counts once.",
        ),
        (
            Sqs(failing={"ListMessageMoveTasks": KeyboardInterrupt()}),
            130,
            "`aws sqs list-message-move-tasks` shows it",
        ),
        (Sqs(failing={"GetQueueUrl": "AWS.SimpleQueueService.NonExistentQueue"}), 2, missing),
    ):
        said = redriven(sqs)
        assert (said.code, words in " ".join(said.err.split())) == (code, True), said
