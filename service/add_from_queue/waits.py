"""`Waits`: when a message that stays in the changes queue comes again.

Rule 1: The wait doubles with each receive, to WAIT_MAX_S, so that an outage of minutes is met by few attempts, and none
of its messages has the receives that a dead letter has.
Rule 2: A wait that could not be set is no failure: the queue's own visibility is in its place.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import ChangeMessageVisibilityBatchRequestEntryTypeDef

Record = Mapping[str, Any]
"""A message, as Lambda hands it over."""

WAIT_S, WAIT_MAX_S = 30, 900
ENTRIES_MAX = 10
"""Messages of one ChangeMessageVisibilityBatch."""


class Waits:
    """Of the messages of the queue at `url`. jitter() -> [0, 1) may be given by tests."""

    def __init__(self, url: str, client: SQSClient, jitter: Callable[[], float] = random.random) -> None:
        self._url, self._client, self._jitter = url, client, jitter

    def postpone(self, waits: Sequence[tuple[Record, int | None]]) -> list[str]:
        """Let messages come again after so many seconds, or (None) by their number of receives. What failed."""
        entries: list[ChangeMessageVisibilityBatchRequestEntryTypeDef] = [
            {
                "Id": str(n),
                "ReceiptHandle": record["receiptHandle"],
                "VisibilityTimeout": self._by_receives(record) if wait_s is None else wait_s,
            }
            for n, (record, wait_s) in enumerate(waits)
        ]
        starts = range(0, len(entries), ENTRIES_MAX)
        return [why for start in starts for why in self._hide(entries[start : start + ENTRIES_MAX])]

    def _hide(self, entries: list[ChangeMessageVisibilityBatchRequestEntryTypeDef]) -> Iterator[str]:
        try:
            answer = self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)
        except (ClientError, BotoCoreError) as failure:
            yield f"ChangeMessageVisibilityBatch failed ({failure})."
            return
        yield from (f"{entry['Code']}: {entry.get('Message', '')}" for entry in answer.get("Failed", []))

    def _by_receives(self, record: Record) -> int:
        """WAIT_S, doubled with each further receive; up to a quarter less, so that not all come back at once."""
        receives = int(record["attributes"]["ApproximateReceiveCount"])
        longest = min(WAIT_MAX_S, WAIT_S * 2 ** min(receives - 1, 10))
        return int(longest * (1 - self._jitter() / 4))
