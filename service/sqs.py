"""A queue of SQS, as the functions use it.

Rule 1: A call raises nothing: it says of each entry that SQS did not confirm why that may not be done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

ENTRIES_MAX = 10
"""Entries of one request."""

DELAY_S_MAX = 900
"""The longest delay of a message: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/
sqs-message-timers.html"""


class SqsQueue:
    """The queue at `url`. client() is boto3's; most batches send nothing here, so the first that does makes it."""

    def __init__(self, url: str | None, client: Callable[[], Any]) -> None:
        self._url, self._client = url, client

    def put(self, body: str, attributes: Mapping[str, Any] | None = None) -> str | None:
        """Send a message. Why it may not be there; None: it is."""
        entry = {"MessageBody": body, "MessageAttributes": attributes or {}}
        return self._each("send_message_batch", [entry])[0]

    def put_each(self, bodies: Sequence[str], delays_s: Sequence[int] | None = None) -> list[str | None]:
        """Send messages. For each, in order, why it may not be there; None: it is."""
        entries = [
            {"MessageBody": body, "DelaySeconds": min(delay_s, DELAY_S_MAX)}
            for body, delay_s in zip(bodies, delays_s or [0] * len(bodies), strict=True)
        ]
        return self._each("send_message_batch", entries)

    def hide(self, handles: Sequence[str], seconds: Sequence[int]) -> list[str | None]:
        """Let received messages come again after so many seconds. For each, in order, why it may come sooner."""
        entries = [
            {"ReceiptHandle": handle, "VisibilityTimeout": wait_s}
            for handle, wait_s in zip(handles, seconds, strict=True)
        ]
        return self._each("change_message_visibility_batch", entries)

    def _each(self, operation: str, entries: Sequence[Mapping[str, Any]]) -> list[str | None]:
        whys: list[str | None] = []
        for start in range(0, len(entries), ENTRIES_MAX):
            named = [{"Id": str(n)} | dict(entry) for n, entry in enumerate(entries[start : start + ENTRIES_MAX])]
            try:
                answer = getattr(self._client(), operation)(QueueUrl=self._url, Entries=named)
            except (ClientError, BotoCoreError) as failure:
                whys += [f"The queue did not answer ({failure})."] * len(named)
                continue
            refused = {entry["Id"]: f"The queue refused it ({entry['Code']})." for entry in answer.get("Failed", ())}
            done = {entry["Id"] for entry in answer.get("Successful", ())}
            lost = "The queue's answer did not name it."
            whys += [None if entry["Id"] in done else refused.get(entry["Id"], lost) for entry in named]
        return whys
