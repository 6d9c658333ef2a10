"""A message of the queue as Lambda hands it over, as SQS takes it again, and when it comes again.

Rule 1: The wait of a message that stays doubles with each receive, to WAIT_MAX_S, so an outage of
minutes meets few attempts, and no message gets as many receives as a dead letter has. It is up to a
quarter shorter, so that not all come back at once.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

WAIT_S, WAIT_MAX_S = 30, 900

WHY = "LedgerError"
"""The attribute of a dead letter that names the error."""

WHY_BYTES, ATTRIBUTES_MAX, MESSAGE_BYTES_MAX = 64, 10, 1_048_576
"""https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
"""

Record = Mapping[str, Any]
"""A message, as Lambda hands it over."""


def group_of(record: Record) -> str | None:
    """Whose message it is, where its sender said so:
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/
    SQSDeveloperGuide/sqs-fair-queues.html"""
    group: str | None = record.get("attributes", {}).get("MessageGroupId")
    return group


def attributes_of(record: Record, why: str | None = None) -> dict[str, Any]:
    """The attributes of a message, as SQS takes them; those of a dead letter with its error."""
    attributes = {
        name: _attribute(given) for name, given in record.get("messageAttributes", {}).items()
    }
    room = len(record["body"].encode()) + WHY_BYTES <= MESSAGE_BYTES_MAX
    if why is not None and room and len(attributes) < ATTRIBUTES_MAX:
        attributes[WHY] = {"DataType": "String", "StringValue": why}
    return attributes


def _attribute(given: Mapping[str, Any]) -> dict[str, Any]:
    """An attribute as Lambda hands it over, as SQS takes it."""
    if given.get("stringValue") is not None:
        return {"DataType": given["dataType"], "StringValue": given["stringValue"]}
    return {
        "DataType": given["dataType"],
        "BinaryValue": base64.b64decode(given.get("binaryValue") or ""),
    }


def came_before(record: Record) -> bool:
    return _receives(record) > 1


def _receives(record: Record) -> int:
    return int(record.get("attributes", {}).get("ApproximateReceiveCount", 1))


def wait_of(record: Record, jitter: float) -> int:
    """The seconds after which a message that stays in the queue comes again.

    jitter: from 0 to 1.
    """
    longest = min(WAIT_MAX_S, WAIT_S * 2 ** min(_receives(record) - 1, 10))
    return int(longest * (1 - jitter / 4))
