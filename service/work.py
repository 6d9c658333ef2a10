"""The work queue: its message, and putting messages there.

Rule 1: The message is {"lane": "<Region>#<shard>#<counter>", "verify": false, "planned": true}.
Rule 2: The last two may be missing.
Rule 3: A message names a lane of this Region or is refused.
Rule 4: Unknown fields are ignored.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ledger import failures
from ledger.errors import LedgerError
from ledger.values import Lane

MESSAGES_MAX = 10
"""Of one SendMessageBatch."""


class InvalidWork(LedgerError):
    """A message of the work queue names no lane of this Region. Nothing was read or written. It goes to the DLQ."""


@dataclass(frozen=True, slots=True)
class Work:
    """Visit a lane, or verify it. planned: plan sent it, so it is done with when the mark is no longer held."""

    lane: Lane
    verify: bool = False
    planned: bool = False

    def to_json(self) -> str:
        return json.dumps({"lane": str(self.lane), "verify": self.verify, "planned": self.planned})

    @classmethod
    def from_json(cls, body: str, region: str) -> Work:
        """Raises InvalidWork."""
        try:
            given: Any = json.loads(body)
            lane, verify, planned = Lane.parse(given["lane"]), given.get("verify", False), given.get("planned", False)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InvalidWork(f"A work message is JSON with a lane, not {ascii(body)[:200]}.") from None
        if type(verify) is not bool or type(planned) is not bool:
            raise InvalidWork(f"verify and planned are true or false, not {ascii(body)[:200]}.")
        if lane.region != region:
            raise InvalidWork(f"{lane} is not a lane of {region}. Its own Region's compactor visits it.")
        return cls(lane, verify, planned)


@dataclass(frozen=True, slots=True)
class Send:
    """Put messages on the work queue. Answer: those that were not put, or may not have been."""

    messages: tuple[Work, ...]


class WorkQueue:
    """Answers Send from an SQS queue. Raises the TableErrors when none was put, or nobody knows."""

    def __init__(self, url: str, client: Any) -> None:
        self._url = url
        self._client = client

    def answer(self, request: Send, /) -> tuple[Work, ...]:
        if not request.messages:
            return ()
        entries = [{"Id": str(n), "MessageBody": work.to_json()} for n, work in enumerate(request.messages)]
        try:
            answer = self._client.send_message_batch(QueueUrl=self._url, Entries=entries)
        except (ClientError, BotoCoreError) as failure:
            raise failures.error_of(failure, "send_message_batch", True, "the work queue") from failure
        put = {each["Id"] for each in answer.get("Successful", ())}
        return tuple(work for n, work in enumerate(request.messages) if str(n) not in put)
