"""`ChangeQueue`: puts changes on an SQS queue, for the function that adds them (service/add_from_queue).

Rule 1: A message is checked before it is sent, so that no poison leaves this process.
Rule 2: Key and time are in the body, so sending a change again is harmless and is what every failure asks for.
Rule 3: This module is imported only by those who use it, and a client is made only by `ChangeQueue`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from ledger.errors import InvalidInput, LedgerError, NotQueued, shown
from ledger.message import dumps
from ledger.values import Change, check_changes

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

ENTRIES_MAX = 10
"""Messages of one SendMessageBatch. Ten of the longest (7 KB, as JSON) stay far below what one request may hold."""

TRIES_MAX = 4
"""How often an entry is sent that the queue refused by its own fault, the SDK's retries of a request aside."""

PAUSE_BASE_S = 0.1
CONFIG = Config(
    connect_timeout=2, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 4}, tcp_keepalive=True
)


class ChangeQueue:
    """Sends changes to the standard queue at `url`. Thread-safe; make one a process and keep it.

    client: a boto3 SQS client, else one is made, with this library's time-outs and retries, for `region` or the
    process's own. Raises InvalidInput. pause(seconds) and jitter() -> [0, 1) may be given by tests.
    """

    def __init__(
        self,
        url: str,
        *,
        client: SQSClient | None = None,
        region: str | None = None,
        pause: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        if type(url) is not str or not url:
            raise InvalidInput(f"url is the URL of a queue, not {shown(url)}.")
        self.url = url
        self._client = client if client is not None else boto3.client("sqs", region_name=region, config=CONFIG)
        self._pause = pause
        self._jitter = jitter

    def send(self, change: Change) -> str:
        """Queue one change; returns the MessageId.

        The change needs its idempotency key and `at`, and `region` when it may go to another Region's queue later.
        Raises InvalidInput (nothing sent; InvalidMessage names the field) and NotQueued (send the same change again).
        """
        (sent,) = self.send_many([change])
        if isinstance(sent, LedgerError):
            raise sent
        return sent

    def send_many(self, changes: Iterable[Change]) -> list[str | LedgerError]:
        """Queue many changes, ten a request: a MessageId or a LedgerError for each, in order; no Change raises.

        Raises InvalidInput, before anything is sent, for what is no Change, such as a tuple.
        """
        asked = check_changes("send_many", changes)
        results: dict[int, str | LedgerError] = {}
        bodies: dict[int, str] = {}
        for i, change in enumerate(asked):
            try:
                bodies[i] = dumps(change)
            except LedgerError as error:
                results[i] = error
        numbers = list(bodies)
        for start in range(0, len(numbers), ENTRIES_MAX):
            results |= self._batch({i: bodies[i] for i in numbers[start : start + ENTRIES_MAX]})
        return [results[i] for i in range(len(asked))]

    def _batch(self, bodies: dict[int, str]) -> dict[int, str | LedgerError]:
        """One request; what the queue refused by its own fault again, a bounded number of times."""
        results: dict[int, str | LedgerError] = {}
        todo = list(bodies)
        for attempt in range(TRIES_MAX):
            if attempt:
                self._pause(self._jitter() * PAUSE_BASE_S * 2**attempt)
            answers, again = self._send([{"Id": str(i), "MessageBody": bodies[i]} for i in todo])
            results |= answers
            todo = again
            if not todo:
                break
        return results

    def _send(
        self, entries: Sequence[SendMessageBatchRequestEntryTypeDef]
    ) -> tuple[dict[int, str | LedgerError], list[int]]:
        """The answer for each entry, and which of them are worth sending again."""
        results: dict[int, str | LedgerError] = {
            int(entry["Id"]): NotQueued("The queue's answer does not name the message. Send the change again.")
            for entry in entries
        }
        try:
            answer = self._client.send_message_batch(QueueUrl=self.url, Entries=entries)
        except (ClientError, BotoCoreError) as failure:
            why = f"SendMessageBatch failed ({failure}). Send the change again: it counts once."
            return dict.fromkeys(results, NotQueued(why)), []
        results |= {int(sent["Id"]): sent["MessageId"] for sent in answer.get("Successful", [])}
        failed = answer.get("Failed", [])
        for entry in failed:
            why = f"The queue refused the message ({entry['Code']}: {entry.get('Message', '')})."
            results[int(entry["Id"])] = NotQueued(f"{why} Send the change again: it counts once.")
        return results, [int(entry["Id"]) for entry in failed if not entry["SenderFault"]]
