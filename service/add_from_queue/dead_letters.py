"""The copy of a message for the dead-letter queue.

Rule 1: It has the body and the attributes of the message, and as a further attribute what was wrong.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

Record = Mapping[str, Any]
"""A message, as Lambda hands it over."""

WHY = "LedgerError"
"""The attribute that names the error."""

WHY_BYTES, ATTRIBUTES_MAX, MESSAGE_BYTES_MAX = 64, 10, 1_048_576
"""https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html"""


def attributes_of(record: Record, why: str) -> dict[str, Any]:
    """The attributes of a copy, as SQS takes them."""
    attributes = {name: _attribute(given) for name, given in record.get("messageAttributes", {}).items()}
    room = len(record["body"].encode()) + WHY_BYTES <= MESSAGE_BYTES_MAX
    if room and len(attributes) < ATTRIBUTES_MAX:
        attributes[WHY] = {"DataType": "String", "StringValue": why}
    return attributes


def _attribute(given: Mapping[str, Any]) -> dict[str, Any]:
    """An attribute as Lambda hands it over, as SQS takes it."""
    if given.get("stringValue") is not None:
        return {"DataType": given["dataType"], "StringValue": given["stringValue"]}
    return {"DataType": given["dataType"], "BinaryValue": base64.b64decode(given.get("binaryValue") or "")}
