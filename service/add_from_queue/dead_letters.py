"""`DeadLetters`: where a message goes at once that no retry can make good.

Rule 1: A message is acknowledged only when its copy is confirmed. A crash in between makes two copies, and a redrive
counts each change once.
Rule 2: The copy has the body and the attributes of the message, and as a further attribute what was wrong.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

WHY = "LedgerError"
"""The attribute that names the error."""

WHY_BYTES, ATTRIBUTES_MAX, MESSAGE_BYTES_MAX = 64, 10, 1_048_576
"""https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html"""


class DeadLetters:
    """The dead-letter queue at `url`."""

    def __init__(self, url: str, client: SQSClient) -> None:
        self._url, self._client = url, client

    def bury(self, record: Mapping[str, Any], why: str) -> str | None:
        """Copy a message there. None when that is confirmed, else what failed."""
        attributes = {name: _attribute(said) for name, said in record.get("messageAttributes", {}).items()}
        room = len(record["body"].encode()) + WHY_BYTES <= MESSAGE_BYTES_MAX
        if room and len(attributes) < ATTRIBUTES_MAX:
            attributes[WHY] = {"DataType": "String", "StringValue": why}
        try:
            self._client.send_message(QueueUrl=self._url, MessageBody=record["body"], MessageAttributes=attributes)
        except (ClientError, BotoCoreError) as failure:
            return f"SendMessage failed ({failure})."
        return None


def _attribute(said: Mapping[str, Any]) -> Any:
    """An attribute as Lambda hands it over, as SQS takes it."""
    if said.get("stringValue") is not None:
        return {"DataType": said["dataType"], "StringValue": said["stringValue"]}
    return {"DataType": said["dataType"], "BinaryValue": base64.b64decode(said.get("binaryValue") or "")}
