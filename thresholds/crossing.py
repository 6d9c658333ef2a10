"""A crossing: that a counter's value passed a threshold, and the event that tells of it.

Rule 1: The event follows from the crossing and from nothing else, so it is the same each time it is sent.
Rule 2: Its id names the crossing for ever: crossings of one threshold are numbered from 1, in one Region.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ledger.checks import to_datetime
from ledger.kinds import of_its_kind
from ledger.limit import Threshold
from ledger.message import time_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """The last crossing of a threshold. number: how many there were. side: which one the value came to.

    region: which one keeps and tells it. name, above, below: of the threshold, as it was then. value: what was read;
    at_ms: when that read began, by the clock of who read. told: the number of the last crossing that was told.
    """

    region: str
    counter: str
    name: str
    number: int
    side: str
    value: int
    at_ms: int
    told: int
    above: int | None = None
    below: int | None = None

    @classmethod
    def after(
        cls, before: Crossing | None, region: str, counter: str, threshold: Threshold, value: int, at_ms: int
    ) -> Crossing:
        """The crossing that follows `before`, which was told, at this value."""
        told = before.number if before is not None else 0
        return cls(
            region=region,
            counter=counter,
            name=threshold.name,
            number=told + 1,
            side=threshold.side_of(value),
            value=value,
            at_ms=at_ms,
            told=told,
            above=threshold.above,
            below=threshold.below,
        )

    @property
    def is_told(self) -> bool:
        return self.told >= self.number

    def event(self, table: str) -> dict[str, Any]:
        """The event's detail (docs/thresholds.md)."""
        bound = {"above": self.above} if self.above is not None else {"below": self.below}
        return {
            "id": f"{table}/{self.region}/{self.counter}/{self.name}/{self.number}",
            "counter": self.counter,
            "threshold": self.name,
            **bound,
            "side": self.side,
            "value": self.value,
            "at": time_text(to_datetime(self.at_ms)),
            "number": self.number,
            "region": self.region,
            "table": table,
        }


@of_its_kind
class Tell(NamedTuple):
    """Put the event of a crossing on the event bus. Answer: None: the bus has it. Raises LedgerError: it may have it or
    not, and the same again does no harm."""

    crossing: Crossing
    table: str
