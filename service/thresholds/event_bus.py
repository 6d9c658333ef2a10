"""The event of a crossing, and the event bus that takes it.

Rule 1: The event follows from the crossing and from nothing else, so each time it is the same,
under one id.
Rule 2: An entry that EventBridge did not take is an error, though the call succeeded:
https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from ledger.client.message import time_text
from ledger.core.checks import to_datetime
from ledger.core.errors import LedgerError
from ledger.tables import failures
from service.thresholds.crossings import Crossing

SOURCE, DETAIL_TYPE = "exact-counter", "Threshold crossed"


class NotPublished(LedgerError):
    """The event bus did not take an event.

    Its crossing is kept, and the next evaluation publishes it.
    """


class Publish(NamedTuple):
    """Put the event of a crossing on the event bus. Answer: None, the bus has it. Raises
    LedgerError: the bus may have it or not, and the same again does no harm."""

    crossing: Crossing
    table: str

    @property
    def detail(self) -> dict[str, Any]:
        """The event's detail (docs/thresholds.md)."""
        crossing = self.crossing
        side, bound = (
            ("above", crossing.above) if crossing.above is not None else ("below", crossing.below)
        )
        place = f"{self.table}/{crossing.region}/{crossing.counter}"
        return {
            "id": f"{place}/{crossing.name}/{crossing.number}",
            "counter": crossing.counter,
            "threshold": crossing.name,
            side: bound,
            "side": crossing.side,
            "value": crossing.value,
            "at": time_text(to_datetime(crossing.at_ms)),
            "number": crossing.number,
            "region": crossing.region,
            "table": self.table,
        }


@dataclass(slots=True)
class Evaluated:
    """Numbers of events.

    unconfirmed: the bus did not confirm them, and the next evaluation publishes them.
    """

    published: int = 0
    unconfirmed: int = 0


class EventBus:
    """Answers Publish from a bus of EventBridge. client() is boto3's, of the Region."""

    def __init__(self, name: str, client: Callable[[], Any]) -> None:
        self._name, self._client = name, client

    def answer(self, request: Publish, /) -> None:
        entry = {
            "EventBusName": self._name,
            "Source": SOURCE,
            "DetailType": DETAIL_TYPE,
            "Time": to_datetime(request.crossing.at_ms),
            "Detail": json.dumps(request.detail),
        }
        try:
            answer = self._client().put_events(Entries=[entry])
        except (ClientError, BotoCoreError) as failure:
            raise failures.error_of(
                failure, "put_events", True, f"the event bus {self._name}"
            ) from failure
        if answer["FailedEntryCount"]:
            code = answer["Entries"][0].get("ErrorCode")
            kept = "The table keeps its crossing, and the next evaluation publishes it."
            raise NotPublished(f"The event bus {self._name} did not take an event: {code}. {kept}")
