"""`redrive`: dead letters go back by SQS's own task, which is shown until it is done."""

from typing import Any

from botocore.exceptions import ClientError

from ledgerctl.call import Surroundings
from tests.ledgerctl.support import ENVIRON, A, Said, ctl


class Sqs:
    """SQS with some messages and a move task of some steps (status, moved); an operation may fail."""

    region_name = A

    def __init__(self, *tasks: tuple[str, int], messages: int = 3, **failing: str | BaseException) -> None:
        self.tasks, self.messages, self.failing = iter(tasks), str(messages), failing
        self.started: list[dict[str, Any]] = []

    def client(self, *_: Any, **__: Any) -> Any:
        return self

    def __getattr__(self, operation: str) -> Any:
        def call(**asked: Any) -> Any:
            failure = self.failing.get(operation)
            if isinstance(failure, BaseException):
                raise failure
            if failure is not None:
                raise ClientError({"Error": {"Code": failure, "Message": "said the test"}}, operation)
            match operation:
                case "get_queue_url":
                    return {"QueueUrl": asked["QueueName"]}
                case "get_queue_attributes":
                    counts = {"ApproximateNumberOfMessages": self.messages}
                    return {"Attributes": {"QueueArn": f"arn:{asked['QueueUrl']}", **counts}}
                case "start_message_move_task":
                    return self.started.append(asked)
            status, moved = next(self.tasks)
            why = {"FailureReason": "AWS said so"} if status == "FAILED" else {}
            return {"Results": [{"Status": status, "ApproximateNumberOfMessagesMoved": moved, **why}]}

        return call


def redriven(sqs: Any, *options: str) -> Said:
    world = Surroundings(environ=ENVIRON, session=lambda _: sqs, pause=lambda _: None)
    return ctl(world, "redrive", *(options or ("changes",)), "--stack", "shop-prod")


def test_sqs_moves_dead_letters_to_the_queue_that_is_named_if_there_are_any_and_not_in_a_dry_run() -> None:
    sqs = Sqs(("RUNNING", 1), ("COMPLETED", 3))
    said = redriven(sqs)
    assert (said.code, said.out) == (0, "shop-prod-changes-dlq: 3 messages\nmoved 3 messages to shop-prod-changes\n")
    assert said.err.splitlines() == ["moved so far: 1", "moved so far: 3"]
    assert sqs.started == [{"SourceArn": "arn:shop-prod-changes-dlq", "DestinationArn": "arn:shop-prod-changes"}]
    (document,) = redriven(Sqs(("COMPLETED", 3)), "work", "--json").documents
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
    of_sqs = "AWS.SimpleQueueService."
    missing = "There is no queue shop-prod-changes-dlq, or no shop-prod-changes, in eu-west-1. Moved so far: 0. --stack"
    for sqs, code, words in (
        (Sqs(("RUNNING", 1), ("FAILED", 2)), 3, "FAILED, AWS said so. Moved: 2."),
        (Sqs(start_message_move_task=f"{of_sqs}AccessDenied"), 3, "sqs:GetQueueUrl"),
        (Sqs(start_message_move_task=f"{of_sqs}UnsupportedOperation"), 3, "UnsupportedOperation"),
        (Sqs(get_queue_attributes="ServiceUnavailable"), 3, "Moved so far: 0. Run it again: a change counts once."),
        (Sqs(list_message_move_tasks=KeyboardInterrupt()), 130, "`aws sqs list-message-move-tasks` shows it"),
        (Sqs(get_queue_url=f"{of_sqs}NonExistentQueue"), 2, missing),
    ):
        said = redriven(sqs)
        assert (said.code, words in " ".join(said.err.split())) == (code, True), said
