"""The service's queues, as a user of SQS reaches them.

Rule 1: What SQS does not take ends the run: nobody could say then what was sent.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Any, TypeVar

from lab.e2e.deployed import Service
from ledger.errors import LedgerError
from ledger.queue import ChangeQueue
from ledger.values import Change

MESSAGES_OF_BATCH = 10
CHANGES_AT_ONCE = 40  # of which a producer of many makes one message
POLL_S = 2.0
WAITING = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")

Left = TypeVar("Left", bound=Sized)


class Queues:
    """Those of every Region, by the names of `Service.queues`."""

    def __init__(self, services: Mapping[str, Service], sqs: Mapping[str, Any]) -> None:
        self._services, self._sqs = services, sqs

    def send(self, region: str, messages: Sequence[str]) -> int:
        """Queue messages as they are. Returns how many. Raises RuntimeError."""
        for start in range(0, len(messages), MESSAGES_OF_BATCH):
            entries = [
                {"Id": str(i), "MessageBody": body}
                for i, body in enumerate(messages[start : start + MESSAGES_OF_BATCH])
            ]
            answer = self._sqs[region].send_message_batch(
                QueueUrl=self._services[region].queues["changes"], Entries=entries
            )
            if answer.get("Failed"):
                raise RuntimeError(f"SQS refused {answer['Failed']}")
        return len(messages)

    def send_many(self, region: str, changes: Sequence[Change]) -> int:
        """Queue changes in messages of many, by the library's helper. Returns how many messages. Raises LedgerError."""
        queue = ChangeQueue(self._services[region].queues["changes"], client=self._sqs[region])
        sent = set()
        for start in range(0, len(changes), CHANGES_AT_ONCE):
            for message_id in queue.send_many(changes[start : start + CHANGES_AT_ONCE]):
                if isinstance(message_id, LedgerError):
                    raise message_id
                sent.add(message_id)
        return len(sent)

    def waiting(self, name: str) -> dict[str, int]:
        """The Regions whose queue of this name is not empty."""
        waiting = {}
        for region, service in self._services.items():
            answer = self._sqs[region].get_queue_attributes(QueueUrl=service.queues[name], AttributeNames=list(WAITING))
            waiting[region] = sum(int(answer["Attributes"].get(each, 0)) for each in WAITING)
        return {region: count for region, count in waiting.items() if count}

    def drain(self, region: str, name: str) -> Counter[str]:
        """Take every message that can be had. Returns the bodies."""
        url = self._services[region].queues[name]
        held: Counter[str] = Counter()
        while messages := self._sqs[region].receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
            for message in messages:
                held[message["Body"]] += 1
                self._sqs[region].delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return held


def until_empty(left: Callable[[], Left], most_s: float, pause_s: float = POLL_S) -> Left:
    """Ask what is left until nothing is, or the time is over. Returns what was left then."""
    deadline = time.monotonic() + most_s
    while (found := left()) and time.monotonic() < deadline:
        time.sleep(pause_s)
    return found
