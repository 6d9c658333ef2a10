"""What a compactor did: counted as it happens, so that a step that fails half way has told of its first half."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ledger.errors import LedgerError
from ledger.values import Lane


@dataclass(slots=True)
class Tally:
    """The running counts of one visit to a lane; the programs write here."""

    folded: int = 0
    settled: int = 0
    cleaned: int = 0
    commits: int = 0
    conflicts: list[str] = field(default_factory=list)
    postponed_by: list[str] = field(default_factory=list)
    unsettled: bool = False
    """The visit reached its bound of commits while there were strays."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a compactor did.

    lanes: visited. folded, settled, cleaned: deltas. commits: transactions of fold and settle. gave_up: lanes left to
    the next run because another compactor was there. postponed: lanes whose clean waits for a Region. conflicts: tokens
    of deltas that are listed with another change (kept; look at them). problems: lanes that failed, with the error.
    """

    lanes: int = 0
    folded: int = 0
    settled: int = 0
    cleaned: int = 0
    commits: int = 0
    gave_up: int = 0
    postponed: int = 0
    conflicts: tuple[str, ...] = ()
    problems: Mapping[Lane, LedgerError] = field(default_factory=dict)

    @classmethod
    def of(cls, tally: Tally, *, gave_up: bool = False, problems: Mapping[Lane, LedgerError] | None = None) -> Report:
        """The report of one visit to one lane."""
        return cls(
            lanes=1,
            folded=tally.folded,
            settled=tally.settled,
            cleaned=tally.cleaned,
            commits=tally.commits,
            gave_up=int(gave_up),
            postponed=int(bool(tally.postponed_by)),
            conflicts=tuple(tally.conflicts),
            problems=problems or {},
        )

    @classmethod
    def total(cls, reports: Iterable[Report]) -> Report:
        """One report for many."""
        parts = list(reports)
        return cls(
            lanes=sum(p.lanes for p in parts),
            folded=sum(p.folded for p in parts),
            settled=sum(p.settled for p in parts),
            cleaned=sum(p.cleaned for p in parts),
            commits=sum(p.commits for p in parts),
            gave_up=sum(p.gave_up for p in parts),
            postponed=sum(p.postponed for p in parts),
            conflicts=tuple(token for p in parts for token in p.conflicts),
            problems={lane: error for p in parts for lane, error in p.problems.items()},
        )
