"""`ChangeQueue`: puts changes on an SQS queue, for the function that adds them
(service/add_from_queue).

Rule 1: `send` checks a message before it sends it, so that no poison leaves this process.
Rule 2: Key and time are in the body, so sending a change again is harmless, and is the remedy for
every failure.
Rule 3: A message has as many changes as MESSAGE_BYTES_MAX allows, so transport costs less than the
count. If a message fails, each of its changes fails with an error of its own.
"""

from __future__ import annotations

import copy
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from ledger.client.message import dumps, joined
from ledger.core.checks import is_url
from ledger.core.errors import InvalidInput, LedgerError, NotQueued, shown
from ledger.core.running import or_error
from ledger.core.values import Change, check_changes
from ledger.tables.failures import FAILED

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef
else:  # its types are not installed with this library
    SQSClient = Any

ENTRIES_MAX = 10
"""Messages of one SendMessageBatch."""

REQUEST_BYTES_MAX = 262_144
"""The size of all messages of a SendMessageBatch: the 256 KiB that SQS and its engines take
everywhere (SQS itself takes 1 MiB since August 2025). It bills each 64 KiB of a request, so a
larger one would not be cheaper."""

MESSAGE_BYTES_MAX = REQUEST_BYTES_MAX // ENTRIES_MAX
"""Some 250 changes. The longest change has 7 KB."""

TRIES_MAX = 4
"""How often an entry is sent that the queue refused by a fault of its own, the SDK's retries of
a request aside.
"""

_GROUP = re.compile(r"[!-~]{1,128}")
"""A MessageGroupId:
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
"""

AGAIN = "It may or may not be in the queue. Send the change again: it counts once."
PAUSE_BASE_S = 0.1
CONFIG = Config(
    connect_timeout=2,
    read_timeout=5,
    retries={"mode": "standard", "total_max_attempts": 4},
    tcp_keepalive=True,
)


class ChangeQueue:
    """Sends changes to the standard queue at `url`. It is thread-safe: make one in each process and
    keep it.

    group: whose changes they are, such as a tenant: 1 to 128 printable ASCII characters without
    spaces. SQS delays the messages of a group that sends very many, and not those of the others
    (fair queues).

    client: a boto3 SQS client; without it the queue makes one with this library's time-outs and
    retries, for `region` or the process's own. pause(seconds) and jitter() -> [0, 1) are for tests.
    Raises InvalidInput.
    """

    def __init__(
        self,
        url: str,
        *,
        group: str | None = None,
        client: SQSClient | None = None,
        region: str | None = None,
        pause: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        if type(url) is not str or not url or (client is None and not is_url(url)):
            raise InvalidInput(f"{shown(url)} is not the URL of a queue.")
        if group is not None and not (type(group) is str and _GROUP.fullmatch(group)):
            raise InvalidInput(
                f"group is 1 to 128 printable ASCII characters without spaces, not {shown(group)}."
            )
        self.url, self.group = url, group
        # Rule 4: only a queue makes a client, so an import makes none.
        self._client = client if client is not None else _client(region)
        self._pause = pause
        self._jitter = jitter

    def send(self, change: Change) -> str:
        """Queue one change, in a message of its own, and return the MessageId. The change needs its
        idempotency key, `at` unless the key brings its time, and `region` when it may go to another
        Region's queue later.

        Raises InvalidInput (nothing sent; InvalidMessage names the field) and NotQueued (send the
        same change again).
        """
        if not isinstance(change, Change):
            raise InvalidInput(f"send takes a Change(counter, change, ...), not {shown(change)}.")
        (sent,) = self.send_many([change])
        if isinstance(sent, LedgerError):
            raise sent
        return sent

    def send_many(self, changes: Iterable[Change]) -> list[str | LedgerError]:
        """Queue many changes in few messages, ten messages a request. It returns for each change,
        in order, the MessageId of the message that it travels in, or a LedgerError of its own:
        look at every one, because no Change makes the call raise.

        A change that cannot be added keeps its message in the queue. The other changes of the
        message are then added again, and count once. Raises InvalidInput, before anything is sent,
        for what is no Change, such as a tuple.
        """
        results = [or_error(dumps, change) for change in check_changes("send_many", changes)]
        texts = {n: text for n, text in enumerate(results) if isinstance(text, str)}
        messages = list(_messages(texts))
        for start in range(0, len(messages), ENTRIES_MAX):
            batch = dict(enumerate(messages[start : start + ENTRIES_MAX], start))
            sent = self._batch(
                {i: joined([texts[n] for n in numbers]) for i, numbers in batch.items()}
            )
            for n, i in ((n, i) for i, numbers in batch.items() for n in numbers):
                results[n] = copy.copy(sent[i])
        return results

    def _batch(self, bodies: dict[int, str]) -> dict[int, str | LedgerError]:
        """Send one request, and again what the queue refused by a fault of its own, a bounded
        number of times.
        """
        results: dict[int, str | LedgerError] = {}
        todo = list(bodies)
        for attempt in range(TRIES_MAX):
            if attempt and todo:
                self._pause(self._jitter() * PAUSE_BASE_S * 2**attempt)
            if todo:
                answers, todo = self._send([self._entry(str(i), bodies[i]) for i in todo])
                results |= answers
        return results

    def _entry(self, name: str, body: str) -> SendMessageBatchRequestEntryTypeDef:
        if self.group is None:
            return {"Id": name, "MessageBody": body}
        return {"Id": name, "MessageBody": body, "MessageGroupId": self.group}

    def _send(
        self, entries: Sequence[SendMessageBatchRequestEntryTypeDef]
    ) -> tuple[dict[int, str | LedgerError], list[int]]:
        """The answer for each entry, and which of them are worth sending again."""
        unnamed = NotQueued(f"The queue's answer does not name the message. {AGAIN}")
        results: dict[int, str | LedgerError] = {int(entry["Id"]): unnamed for entry in entries}
        try:
            answer = self._client.send_message_batch(QueueUrl=self.url, Entries=entries)
        except FAILED as failure:
            return dict.fromkeys(
                results, NotQueued(f"SendMessageBatch failed ({failure}). {AGAIN}")
            ), []
        results |= {int(sent["Id"]): sent["MessageId"] for sent in answer.get("Successful", [])}
        failed = answer.get("Failed", [])
        for entry in failed:
            why = (
                f"The queue did not take the message ({entry['Code']}: {entry.get('Message', '')})."
            )
            results[int(entry["Id"])] = NotQueued(f"{why} {AGAIN}")
        return results, [int(entry["Id"]) for entry in failed if not entry["SenderFault"]]


def _client(region: str | None) -> SQSClient:
    try:
        return boto3.client("sqs", region_name=region, config=CONFIG)
    except (BotoCoreError, TypeError, ValueError) as failure:
        # no Region, none of AWS, no credentials
        why = str(failure).rstrip(".")
        raise InvalidInput(
            f"boto3 makes no SQS client for region={shown(region)}: {why}. Nothing was written. "
            "Give region=, the Region of the queue."
        ) from failure


def _messages(texts: Mapping[int, str]) -> Iterator[list[int]]:
    """Which changes travel together, by their numbers and in their order."""
    message: list[int] = []
    size = around = len(joined(["", ""])) - 1
    for number, text in texts.items():
        bytes_more = len(text.encode()) + 1
        if message and size + bytes_more > MESSAGE_BYTES_MAX:
            yield message
            message, size = [], around
        message.append(number)
        size += bytes_more
    if message:
        yield message
