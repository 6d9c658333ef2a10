"""`Outcomes`: a queue that says of each change of a limited counter whether it counts.

Rule 1: What is decided is told, and what may still be decided is not. An answer is for ever, so one that is told again,
because its message came again, is the same.
Rule 2: A message is not acknowledged before its outcomes are on the queue, so each is told at least once.
Rule 3: An outcome names its change as its message did, and no amount.
The format is public: docs/producers.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from ledger import Receipt
from ledger.errors import LimitReached
from ledger.message import NO_XML, time_text

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

    from ledger import Change
    from service.observe import Outcome

ENTRIES_MAX = 10
"""Messages of one SendMessageBatch; the longest outcome has 7 KB."""


def outcome_of(change: Change, outcome: Outcome) -> str | None:
    """The message that tells it, or None while nothing is decided. The change has its key and `at`."""
    match outcome:
        case Receipt(delta=delta):
            said = "counted"
        case LimitReached(delta=delta) if delta is not None:
            said = "refused"
        case _:
            return None
    assert change.at is not None
    named = {"counter": change.counter, "idempotency_key": change.idempotency_key, "at": time_text(change.at)}
    text = json.dumps(named | {"region": delta.lane.region, "outcome": said}, ensure_ascii=False, separators=(",", ":"))
    return text.translate(NO_XML)


class Outcomes:
    """The standard queue at `url`."""

    def __init__(self, url: str, client: SQSClient) -> None:
        self._url, self._client = url, client

    def send(self, texts: Mapping[str, Iterable[str]]) -> dict[str, str]:
        """Queue the outcomes of some messages, by message. Returns those that the queue did not confirm, with why."""
        entries = [(message_id, text) for message_id, those in texts.items() for text in those]
        failed: dict[str, str] = {}
        for start in range(0, len(entries), ENTRIES_MAX):
            some = entries[start : start + ENTRIES_MAX]
            numbered = enumerate(text for _, text in some)
            lost = self._send([{"Id": str(n), "MessageBody": text} for n, text in numbered])
            failed |= {some[n][0]: why for n, why in lost.items()}
        return failed

    def _send(self, entries: list[SendMessageBatchRequestEntryTypeDef]) -> dict[int, str]:
        """Those entries that were not confirmed, with why."""
        try:
            answer = self._client.send_message_batch(QueueUrl=self._url, Entries=entries)
        except (ClientError, BotoCoreError) as failure:
            return dict.fromkeys(range(len(entries)), f"SendMessageBatch failed ({failure}).")
        sent = {entry["Id"] for entry in answer.get("Successful", [])}
        why = {entry["Id"]: f"The queue refused it ({entry['Code']})." for entry in answer.get("Failed", [])}
        return {n: why.get(str(n), "The queue did not name it.") for n in range(len(entries)) if str(n) not in sent}
