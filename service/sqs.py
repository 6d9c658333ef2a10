"""A queue of SQS, as the functions use it.

Rule 1: A call raises nothing: for each entry it says why SQS did not confirm it, or None.
Rule 2: Many messages leave in several requests at once, and none begins after `stop()`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

ENTRIES_MAX = 10
"""Entries of one request."""

AT_ONCE = 8
"""Requests at once, where there are more."""

STOPPED = "It was not sent: too little time was left."

DELAY_S_MAX = 900
"""The longest delay of a message:
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/
sqs-message-timers.html"""


class SqsQueue:
    """The queue at `url`.

    client() is boto3's; most batches send nothing here, so the first that does makes it.
    """

    def __init__(self, url: str | None, client: Callable[[], Any]) -> None:
        self._url, self._client = url, client

    def put(
        self,
        body: str,
        attributes: Mapping[str, Any] | None = None,
        *,
        group: str | None = None,
        delay_s: int = 0,
    ) -> str | None:
        """Send a message.

        Why SQS did not confirm it; None: it did. group: whose it is, for a queue that is fair.
        """
        entry: dict[str, Any] = {"MessageBody": body, "MessageAttributes": attributes or {}}
        if group is not None:
            entry["MessageGroupId"] = group
        if delay_s:
            entry["DelaySeconds"] = delay_s
        return self._each("send_message_batch", [entry])[0]

    def put_each(
        self,
        bodies: Sequence[str],
        delays_s: Sequence[int] | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> list[str | None]:
        """Send messages. For each, in order, why SQS did not confirm it; None: it did."""
        entries = [
            {"MessageBody": body, "DelaySeconds": min(delay_s, DELAY_S_MAX)}
            for body, delay_s in zip(bodies, delays_s or [0] * len(bodies), strict=True)
        ]
        return self._each("send_message_batch", entries, stop)

    def hide(
        self,
        handles: Sequence[str],
        seconds: Sequence[int],
        stop: Callable[[], bool] = lambda: False,
    ) -> list[str | None]:
        """Let received messages come again after so many seconds.

        For each, in order, why it may come sooner.
        """
        entries = [
            {"ReceiptHandle": handle, "VisibilityTimeout": wait_s}
            for handle, wait_s in zip(handles, seconds, strict=True)
        ]
        return self._each("change_message_visibility_batch", entries, stop)

    def _each(
        self,
        operation: str,
        entries: Sequence[Mapping[str, Any]],
        stop: Callable[[], bool] = lambda: False,
    ) -> list[str | None]:
        batches = [
            entries[start : start + ENTRIES_MAX] for start in range(0, len(entries), ENTRIES_MAX)
        ]

        def send(batch: Sequence[Mapping[str, Any]]) -> list[str | None]:
            return [STOPPED] * len(batch) if stop() else self._batch(operation, batch)

        if len(batches) <= AT_ONCE:
            return [*chain.from_iterable(map(send, batches))]
        self._client()  # made in one thread
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="service-sqs") as pool:
            return [*chain.from_iterable(pool.map(send, batches))]

    def _batch(self, operation: str, entries: Sequence[Mapping[str, Any]]) -> list[str | None]:
        named = [{"Id": str(n)} | dict(entry) for n, entry in enumerate(entries)]
        try:
            answer = getattr(self._client(), operation)(QueueUrl=self._url, Entries=named)
        except (ClientError, BotoCoreError) as failure:
            return [f"The queue did not answer ({failure})."] * len(named)
        refused = {
            entry["Id"]: f"The queue refused it ({entry['Code']})."
            for entry in answer.get("Failed", ())
        }
        done = {entry["Id"] for entry in answer.get("Successful", ())}
        lost = "The queue's answer did not name it."
        return [None if entry["Id"] in done else refused.get(entry["Id"], lost) for entry in named]
