"""The client-side helper of the queue: full messages, batches of ten, refusals, and what is said
of each change.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from botocore.exceptions import EndpointConnectionError

from ledger import Change
from ledger.client.message import dumps, loads_many
from ledger.client.queue import (
    ENTRIES_MAX,
    MESSAGE_BYTES_MAX,
    REQUEST_BYTES_MAX,
    TRIES_MAX,
    ChangeQueue,
)
from ledger.core.errors import InvalidInput, InvalidMessage, NotQueued

AT = datetime(2010, 12, 1, 8, 26, tzinfo=UTC)
POISON = Change("two words", 1, "k", AT)
Answer = Callable[[list[dict[str, str]]], dict[str, Any]]


def small(n: int, accent: str = "") -> Change:
    return Change(f"stock:{n % 50:05}A", -6, f"53{n:04}/{n:05}{accent}", AT)


class Queue:
    """An SQS client that answers as it is told, batch by batch."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.batches: list[list[str]] = []
        self.groups: set[str | None] = set()
        self.pauses: list[float] = []

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, str]]) -> dict[str, Any]:
        assert QueueUrl == "url"
        self.batches.append([entry["MessageBody"] for entry in Entries])
        self.groups |= {entry.get("MessageGroupId") for entry in Entries}
        return (self.answers.pop(0) if self.answers else taken)(Entries)

    def open(self, **given: Any) -> ChangeQueue:
        return ChangeQueue(
            "url", client=cast(Any, self), pause=self.pauses.append, jitter=lambda: 1.0, **given
        )


def taken(entries: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "Successful": [
            {"Id": entry["Id"], "MessageId": f"message-{entry['Id']}"} for entry in entries
        ]
    }


def refused(*, by_sender: bool, only: int = 0) -> Answer:
    def answer(entries: list[dict[str, str]]) -> dict[str, Any]:
        failed = {"Id": entries[only]["Id"], "Code": "InternalError", "SenderFault": by_sender}
        rest = [entry for entry in entries if entry["Id"] != failed["Id"]]
        return {**taken(rest), "Failed": [failed]}

    return answer


def no_answer(entries: list[dict[str, str]]) -> dict[str, Any]:
    raise EndpointConnectionError(endpoint_url="url")


def expired(entries: list[dict[str, str]]) -> dict[str, Any]:
    raise RuntimeError(
        "Credentials were refreshed, but the refreshed credentials are still expired."
    )


def test_what_is_refused_lost_or_not_named_is_not_called_queued(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # messages so short that each holds one change
    monkeypatch.setattr("ledger.client.queue.MESSAGE_BYTES_MAX", 1)
    queue = Queue()
    assert queue.open().send_many(map(small, range(23))) == [f"message-{n}" for n in range(23)]
    assert [len(batch) for batch in queue.batches] == [10, 10, 3]
    # answers, how many changes; which are not queued
    outcomes: list[tuple[list[Answer], int, list[int]]] = [
        ([refused(by_sender=False, only=1)], 2, []),  # and is sent again, alone
        ([refused(by_sender=False)] * TRIES_MAX, 2, [0]),
        ([refused(by_sender=True)], 1, [0]),
        ([taken, no_answer], 12, [10, 11]),
        ([expired], 1, [0]),
        ([lambda entries: {}], 1, [0]),
    ]
    for answers, number, lost in outcomes:
        queue = Queue(*answers)
        results = queue.open().send_many(map(small, range(number)))
        assert [n for n, result in enumerate(results) if isinstance(result, NotQueued)] == lost
        assert len(queue.pauses) == len(queue.batches) - (2 if number > 10 else 1)
    assert Queue().open().send(small(0)) == "message-0"
    with pytest.raises(NotQueued, match="counts once"):
        Queue(refused(by_sender=True)).open().send(small(0))


def test_a_queue_without_a_client_for_its_region_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for region in (None, "", "eu west 1", 5):
        with pytest.raises(
            InvalidInput, match=f"boto3 makes no SQS client for region={region!r}: "
        ):
            ChangeQueue("https://sqs.eu-west-1.amazonaws.com/1/changes", region=cast(Any, region))


def test_poison_never_leaves_the_process() -> None:
    queue = Queue()
    for wrong in (("c", 1), {"counter": "c"}, None):
        with pytest.raises(InvalidInput, match=r"changes\[1\]"):
            queue.open().send_many([small(0), cast(Any, wrong)])
        with pytest.raises(InvalidInput, match="send takes a Change"):
            queue.open().send(cast(Any, wrong))
    with pytest.raises(InvalidMessage, match="idempotency key is text, and none was given"):
        queue.open().send(Change("c", 1))
    assert queue.batches == []
    bad, good = queue.open().send_many([POISON, small(1)])
    assert (type(bad), good, queue.batches) == (InvalidMessage, "message-0", [[dumps(small(1))]])


def test_many_changes_fit_few_messages_in_their_order() -> None:
    for accent in ("", "é"):
        queue = Queue()
        changes = [small(n, accent) for n in range(3_000)]
        results = queue.open().send_many(changes)
        sizes = [[len(body.encode()) for body in batch] for batch in queue.batches]
        assert max(map(max, sizes)) <= MESSAGE_BYTES_MAX < max(map(max, sizes)) + 100
        assert max(map(sum, sizes)) <= REQUEST_BYTES_MAX
        assert max(map(len, sizes)) == ENTRIES_MAX
        bodies = [body for batch in queue.batches for body in batch]
        assert [each for body in bodies for each in loads_many(body)] == changes
        first = len(loads_many(bodies[0]))
        assert results[: first + 1] == ["message-0"] * first + ["message-1"]
    longest = Change("c" * 256, -(10**18), "\x01" * 1_024, AT, "ap-southeast-2")
    assert Queue().open().send_many([longest] * 8) == ["message-0"] * 4 + ["message-1"] * 4


def test_a_refused_message_fails_each_of_its_changes() -> None:
    queue = Queue(refused(by_sender=True))
    results = queue.open().send_many([*map(small, range(300)), POISON])
    refusals = [result for result in results if isinstance(result, NotQueued)]
    assert (
        len(refusals)
        == len({id(refusal) for refusal in refusals})
        == len(loads_many(queue.batches[0][0]))
    )
    assert (results[-2], type(results[-1])) == ("message-1", InvalidMessage)


def test_a_group_is_named_in_each_message_also_when_sent_again() -> None:
    for given, group in (
        ({}, None),
        ({"group": "tenant-7"}, "tenant-7"),
        ({"group": "!" * 128}, "!" * 128),
    ):
        queue = Queue(refused(by_sender=False))
        assert "message-0" in queue.open(**given).send_many(map(small, range(3)))
        assert (len(queue.batches), queue.groups) == (2, {group})
    for wrong in ("", " ", "a b", "ü", "x" * 129, "a\n", 7, b"a"):
        with pytest.raises(InvalidInput, match="group is 1 to 128 printable ASCII"):
            Queue().open(group=wrong)
