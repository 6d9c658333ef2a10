"""An SQS queue in memory: delays, batches, and each request that is paid for.

Rule 1: It is the client that the shipped `WorkQueue` sends with, so what is sent, and in how many requests, is its own.
Rule 2: An event source asks for its batch in receives of RECEIVED_MAX and deletes it in as many; a share of a batch
that is smaller is a receive, too.
Rule 3: A request is billed for each 64 KB of it: https://aws.amazon.com/sqs/pricing/
Rule 4: Nothing is lost, doubled or late here: that is for the histories (`make simulate`).
"""

import heapq
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

RECEIVED_MAX = 10
BILLED_BYTES = 64 * 1024


class Sqs:
    """requests: by operation, as billed. sent, received: messages. cpu_s is for what `LeanTable` has it, and stays 0:
    what is done here is next to nothing."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.requests = {"send": 0, "receive": 0, "delete": 0}
        self.sent = self.received = self.longest = 0
        self._now_ms = now_ms
        self._order = count()
        self._waiting: list[tuple[int, int, str]] = []

    def send_message_batch(self, QueueUrl: str, Entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
        self.requests["send"] += -(-sum(len(each["MessageBody"]) for each in Entries) // BILLED_BYTES)
        for each in Entries:
            self.put(each["MessageBody"], self._now_ms() + each["DelaySeconds"] * 1_000)
        return {"Successful": [{"Id": each["Id"]} for each in Entries]}

    def put(self, body: str, visible_ms: int) -> None:
        self.sent += 1
        heapq.heappush(self._waiting, (visible_ms, next(self._order), body))
        self.longest = max(self.longest, len(self._waiting))

    @property
    def next_ms(self) -> int | None:
        """When the next message can be received."""
        return self._waiting[0][0] if self._waiting else None

    def batch(self, most: int) -> dict[str, Any]:
        """The event of those messages that can be received now, `most` at most, which are then deleted."""
        now_ms = self._now_ms()
        bodies: list[str] = []
        while len(bodies) < most and self._waiting and self._waiting[0][0] <= now_ms:
            bodies.append(heapq.heappop(self._waiting)[2])
        self.received += len(bodies)
        for operation in ("receive", "delete"):
            self.requests[operation] += -(-len(bodies) // RECEIVED_MAX)
        return {"Records": [_record(str(n), body) for n, body in enumerate(bodies)]}

    def waiting(self) -> list[tuple[int, str]]:
        """(when it can be received, the message), of all."""
        return [(visible_ms, body) for visible_ms, _, body in self._waiting]


def _record(message_id: str, body: str) -> dict[str, Any]:
    """As Lambda hands it over."""
    return {
        "messageId": message_id,
        "body": body,
        "receiptHandle": "r",
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1545082649183"},
        "messageAttributes": {},
        "md5OfBody": "",
        "awsRegion": "eu-west-1",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:ledger-dev-work",
    }
