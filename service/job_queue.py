"""The work queue: puts jobs there, and on its dead-letter queue the messages that only a person
can help.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ledger.core.errors import LedgerError
from service.jobs import Job
from service.messages import message_of
from service.sqs import SqsQueue


class NotPut(LedgerError):
    """Nobody knows whether a message is on the work queue, or on its DLQ.

    Its sender sends it again.
    """


class Message(NamedTuple):
    """A job to send. delay_s: seconds until a receiver gets it; SQS takes DELAY_S_MAX at most."""

    job: Job
    delay_s: int = 0


class Enqueue(NamedTuple):
    """Put messages on the work queue.

    Answer: for each, in order, None if it is there, or NotPut.
    """

    messages: tuple[Message, ...]


class DeadLetter(NamedTuple):
    """Put a message that only a person can help on the DLQ. Answer: None. Raises NotPut."""

    body: str


class WorkQueue:
    """Answers these two from SQS queues."""

    def __init__(self, url: str, client: Callable[[], Any], dlq_url: str | None = None) -> None:
        self._queue, self._dlq = SqsQueue(url, client), SqsQueue(dlq_url, client)

    def answer(self, request: Enqueue | DeadLetter, /) -> Any:
        if isinstance(request, DeadLetter):
            if (why := self._dlq.put(request.body)) is not None:
                raise _not_put(
                    "The dead-letter queue of the work queue may or may not have a message.", why
                )
            return None
        bodies = [message_of(message.job) for message in request.messages]
        whys = self._queue.put_each(bodies, [message.delay_s for message in request.messages])
        return tuple(
            None if why is None else _not_put("The work queue may or may not have a job.", why)
            for why in whys
        )


def _not_put(what: str, why: str) -> NotPut:
    return NotPut(f"{what} {why} It is sent again.")
