"""`Parcel`: a message with its changes and their outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ledger import Change, Receipt
from ledger.core import errors
from ledger.core.errors import LedgerError
from ledger.lane.add import Outcome
from service.add_from_queue.deadline import NotInTime
from service.add_from_queue.record import Record

POISON = (errors.InvalidInput, errors.TokenConflict, errors.PeriodOver)
"""What no retry changes."""

TOGETHER = (
    errors.TableError,
    errors.OutOfReach,
    errors.GaveUp,
    errors.GateLost,
    errors.LimitMismatch,
)
"""Errors that meet many changes at once."""

LARGE = 250
"""A message with so many changes or more is added after those with fewer.

`ChangeQueue` fills one with so many.
"""


@dataclass(slots=True)
class Parcel:
    """A message: its changes, and their outcomes in order; one that nobody can read has one error,
    and no change.
    error: why it is not done. wait_s: seconds until a change is no longer ahead, where nothing else
    is missing."""

    record: Record
    changes: Sequence[Change]
    outcomes: list[Outcome] = field(default_factory=list)
    error: LedgerError | None = None
    wait_s: int | None = None

    @property
    def name(self) -> str:
        return str(self.record["messageId"])

    @property
    def is_cut(self) -> bool:
        """Whether there was no time for a part of it."""
        return any(isinstance(outcome, NotInTime) for outcome in self.outcomes)


def in_turn(parcels: Sequence[Parcel]) -> list[Parcel]:
    return sorted(parcels, key=lambda parcel: len(parcel.changes) // LARGE)


def lines_of(parcels: Sequence[Parcel]) -> Iterator[tuple[Outcome, dict[str, object]]]:
    """The outcomes of a batch that have a line: of many changes of a message that failed
    together, the first.
    """
    for parcel in parcels:
        failed: set[type[LedgerError]] = set()
        for index, outcome in enumerate(parcel.outcomes):
            if isinstance(outcome, Receipt):  # it is counted, and has no line
                yield outcome, {}
                continue
            if isinstance(outcome, NotInTime):  # of these the batch has one line
                continue
            if isinstance(outcome, TOGETHER):
                if type(outcome) in failed:
                    continue
                failed.add(type(outcome))
            yield outcome, {"message_id": parcel.name, "index": index}
