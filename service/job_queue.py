"""The work queue: putting jobs there, and what only a person can help on its dead-letter queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ledger.errors import LedgerError
from service.jobs import Job
from service.messages import message_of
from service.sqs import SqsQueue


class NotPut(LedgerError):
    """A message may not be on the work queue, or on its DLQ. Who sends it sends it again."""


@dataclass(frozen=True, slots=True)
class Message:
    """A job that is to be sent. delay_s: until it can be received; SQS takes DELAY_S_MAX at most."""

    job: Job
    delay_s: int = 0


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Put messages on the work queue. Answer: for each, in order, None, or the error for which it may not be there."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Put a message that only a person can help on the DLQ. Answer: None. Raises NotPut."""

    body: str


class WorkQueue:
    """Answers these two from SQS queues."""

    def __init__(self, url: str, client: Callable[[], Any], dlq_url: str | None = None) -> None:
        self._queue, self._dlq = SqsQueue(url, client), SqsQueue(dlq_url, client)

    def answer(self, request: Enqueue | DeadLetter, /) -> Any:
        if isinstance(request, DeadLetter):
            if (why := self._dlq.put(request.body)) is not None:
                raise NotPut(f"The dead-letter queue of the work queue: {why}")
            return None
        bodies = [message_of(message.job) for message in request.messages]
        whys = self._queue.put_each(bodies, [message.delay_s for message in request.messages])
        return tuple(None if why is None else NotPut(f"The work queue: {why}") for why in whys)
