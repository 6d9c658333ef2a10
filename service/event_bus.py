"""The event bus: where the crossings of thresholds are told.

Rule 1: An entry that EventBridge did not take is an error, though the call succeeded:
https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html
"""

import json
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ledger.checks import to_datetime
from ledger.dynamo import failures
from ledger.errors import LedgerError
from thresholds import Tell

SOURCE, DETAIL_TYPE = "exact-counter", "Threshold crossed"


class NotTold(LedgerError):
    """The event bus did not take an event. Its crossing is kept, and told by whoever evaluates the counter next."""


class EventBus:
    """Answers Tell from a bus of EventBridge. client: boto3's, of the Region."""

    def __init__(self, name: str, client: Any) -> None:
        self._name, self._client = name, client

    def answer(self, request: Tell, /) -> None:
        crossing, table = request
        entry = {
            "EventBusName": self._name,
            "Source": SOURCE,
            "DetailType": DETAIL_TYPE,
            "Time": to_datetime(crossing.at_ms),
            "Detail": json.dumps(crossing.event(table)),
        }
        try:
            answer = self._client.put_events(Entries=[entry])
        except (ClientError, BotoCoreError) as failure:
            raise failures.error_of(failure, "put_events", True, f"the event bus {self._name}") from failure
        for each in answer["Entries"] if answer["FailedEntryCount"] else ():
            raise NotTold(
                f"The event bus {self._name} did not take an event: {each.get('ErrorCode')}. It is told again."
            )
