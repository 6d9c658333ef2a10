"""The client-side helper of the queue: batches of ten, refusals, and what is said of each change."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from moto import mock_aws

from ledger import Change
from ledger.errors import InvalidInput, InvalidMessage, NotQueued
from ledger.message import loads
from ledger.queue import TRIES_MAX, ChangeQueue

AT = datetime(2010, 12, 1, 8, 26, tzinfo=UTC)
Answer = Callable[[list[dict[str, str]]], dict[str, Any]]


def change(n: int) -> Change:
    return Change("stock:85123A", 4**n, f"order/{n}", AT)


class Queue:
    """An SQS client that answers as it is told, batch by batch."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.batches: list[list[str]] = []
        self.pauses: list[float] = []

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, str]]) -> dict[str, Any]:
        assert QueueUrl == "url"
        self.batches.append([entry["MessageBody"] for entry in Entries])
        return (self.answers.pop(0) if self.answers else taken)(Entries)

    def open(self) -> ChangeQueue:
        return ChangeQueue("url", client=cast(Any, self), pause=self.pauses.append, jitter=lambda: 1.0)


def taken(entries: list[dict[str, str]]) -> dict[str, Any]:
    return {"Successful": [{"Id": entry["Id"], "MessageId": f"message-{entry['Id']}"} for entry in entries]}


def refused(*, by_sender: bool, only: int = 0) -> Answer:
    def answer(entries: list[dict[str, str]]) -> dict[str, Any]:
        failed = {"Id": entries[only]["Id"], "Code": "InternalError", "SenderFault": by_sender}
        rest = [entry for entry in entries if entry["Id"] != failed["Id"]]
        return {**taken(rest), "Failed": [failed]}

    return answer


def no_answer(entries: list[dict[str, str]]) -> dict[str, Any]:
    raise EndpointConnectionError(endpoint_url="url")


def test_changes_are_sent_ten_a_request() -> None:
    queue = Queue()
    assert queue.open().send_many(change(n) for n in range(23)) == [f"message-{n}" for n in range(23)]
    assert [len(batch) for batch in queue.batches] == [10, 10, 3]
    assert [loads(body) for batch in queue.batches for body in batch] == [change(n) for n in range(23)]


def test_what_the_queue_refused_is_sent_again_alone_some_times_unless_it_is_the_senders_fault() -> None:
    queue = Queue(refused(by_sender=False, only=1))
    assert queue.open().send_many([change(0), change(1)]) == ["message-0", "message-1"]
    assert [len(batch) for batch in queue.batches] == [2, 1]
    assert len(queue.pauses) == 1
    queue = Queue(*[refused(by_sender=False)] * TRIES_MAX)
    first, second = queue.open().send_many([change(0), change(1)])
    assert isinstance(first, NotQueued)
    assert second == "message-1"
    assert len(queue.batches) == TRIES_MAX
    queue = Queue(refused(by_sender=True))
    with pytest.raises(NotQueued, match="counts once"):
        queue.open().send(change(0))
    assert len(queue.batches) == 1


def test_what_is_lost_or_not_named_is_not_called_queued_and_the_others_are_left_alone() -> None:
    results = Queue(taken, no_answer).open().send_many(change(n) for n in range(12))
    assert [isinstance(result, NotQueued) for result in results] == [False] * 10 + [True] * 2
    (result,) = Queue(lambda entries: {}).open().send_many([change(0)])
    assert isinstance(result, NotQueued)


def test_poison_never_leaves_the_process() -> None:
    queue = Queue()
    bad, good = queue.open().send_many([Change("two words", 1, "k", AT), change(1)])
    assert isinstance(bad, InvalidMessage)
    assert good == "message-1"
    assert [len(batch) for batch in queue.batches] == [1]


@pytest.mark.parametrize("wrong", [("c", 1), {"counter": "c"}, None], ids=["tuple", "dict", "none"])
def test_what_is_no_change_is_a_mistake_in_the_program_and_nothing_of_the_batch_is_sent(wrong: Any) -> None:
    queue = Queue()
    with pytest.raises(InvalidInput, match=r"changes\[1\]"):
        queue.open().send_many([change(0), wrong])
    assert queue.batches == []


def test_a_real_queue_holds_what_was_sent() -> None:
    with mock_aws():
        client = boto3.client("sqs", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x")
        url = client.create_queue(QueueName="changes")["QueueUrl"]
        message_id = ChangeQueue(url, client=client).send(change(1))
        (message,) = client.receive_message(QueueUrl=url)["Messages"]
    assert message["MessageId"] == message_id
    assert loads(message["Body"]) == change(1)
