"""The client-side helper of the queue: full messages, batches of ten, refusals, and what is said of each change."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from moto import mock_aws

from ledger import Change
from ledger.errors import InvalidInput, InvalidMessage, NotQueued
from ledger.message import dumps, loads, loads_many
from ledger.queue import ENTRIES_MAX, MESSAGE_BYTES_MAX, REQUEST_BYTES_MAX, TRIES_MAX, ChangeQueue

AT = datetime(2010, 12, 1, 8, 26, tzinfo=UTC)
Answer = Callable[[list[dict[str, str]]], dict[str, Any]]


def change(n: int) -> Change:
    return Change("stock:85123A", 4**n, f"order/{n}", AT)


def small(n: int) -> Change:
    return Change(f"stock:{n % 50:05}A", -6, f"53{n:04}/{n:05}", AT)


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


@pytest.fixture
def one_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages so short that each holds one change."""
    monkeypatch.setattr("ledger.queue.MESSAGE_BYTES_MAX", 1)


@pytest.mark.usefixtures("one_each")
def test_messages_are_sent_ten_a_request() -> None:
    queue = Queue()
    assert queue.open().send_many(change(n) for n in range(23)) == [f"message-{n}" for n in range(23)]
    assert [len(batch) for batch in queue.batches] == [10, 10, 3]
    assert [loads(body) for batch in queue.batches for body in batch] == [change(n) for n in range(23)]


@pytest.mark.usefixtures("one_each")
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


@pytest.mark.usefixtures("one_each")
def test_what_is_lost_or_not_named_is_not_called_queued_and_the_others_are_left_alone() -> None:
    results = Queue(taken, no_answer).open().send_many(change(n) for n in range(12))
    assert [isinstance(result, NotQueued) for result in results] == [False] * 10 + [True] * 2
    (result,) = Queue(lambda entries: {}).open().send_many([change(0)])
    assert isinstance(result, NotQueued)


def test_poison_never_leaves_the_process() -> None:
    queue = Queue()
    bad, good = queue.open().send_many([Change("two words", 1, "k", AT), change(1)])
    assert isinstance(bad, InvalidMessage)
    assert good == "message-0"
    assert [len(batch) for batch in queue.batches] == [1]


@pytest.mark.parametrize("make", [small, lambda n: Change(f"stock:{n % 50:05}A", -6, f"é{n:04}/{n:05}", AT)])
def test_many_changes_travel_in_few_messages_which_never_exceed_a_request_and_keep_their_order(
    make: Callable[[int], Change],
) -> None:
    queue = Queue()
    changes = [make(n) for n in range(3_000)]
    results = queue.open().send_many(changes)
    sizes = [[len(body.encode()) for body in batch] for batch in queue.batches]
    assert max(max(batch) for batch in sizes) <= MESSAGE_BYTES_MAX < max(map(max, sizes)) + 100
    assert max(map(sum, sizes)) <= REQUEST_BYTES_MAX
    assert max(map(len, sizes)) == ENTRIES_MAX
    bodies = [body for batch in queue.batches for body in batch]
    assert [change for body in bodies for change in loads_many(body)] == changes
    first = len(loads_many(bodies[0]))
    assert results[: first + 1] == ["message-0"] * first + ["message-1"]


def test_a_message_of_many_that_is_refused_is_told_of_each_of_its_changes_by_an_error_of_its_own() -> None:
    queue = Queue(refused(by_sender=True))
    results = queue.open().send_many([*(small(n) for n in range(300)), Change("two words", 1, "k", AT)])
    refusals = [result for result in results if isinstance(result, NotQueued)]
    assert len(refusals) == len({id(refusal) for refusal in refusals}) == len(loads_many(queue.batches[0][0]))
    assert isinstance(results[-1], InvalidMessage)
    assert results[-2] == "message-1"


def test_of_many_the_longest_travel_too_and_one_alone_has_a_message_that_older_functions_read() -> None:
    longest = Change("c" * 256, -(10**18), "\x01" * 1_024, AT, "ap-southeast-2")
    queue = Queue()
    assert queue.open().send_many([longest] * 8) == ["message-0"] * 4 + ["message-1"] * 4
    assert queue.open().send_many([small(1)]) == ["message-0"]
    assert queue.batches[-1] == [dumps(small(1))]


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
