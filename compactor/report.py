"""What a compactor did, counted as it happens, so that a step that fails half-way has counted
its first half.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from ledger.core.errors import GaveUp, LedgerError
from ledger.core.values import Lane


@dataclass(slots=True)
class Tally:
    """The running counts of one visit to a lane; the programs write here."""

    folded: int = 0
    settled: int = 0
    cleaned: int = 0
    commits: int = 0
    conflicts: list[str] = field(default_factory=list)
    postponed_by: list[str] = field(default_factory=list)
    """For what the clean waits: Regions that lag or do not answer, or the failure that ended it."""
    unfolded: bool = False
    """The visit reached its bound of fold's commits; there may be more to fold."""
    unsettled: bool = False
    """The visit reached its bound of settle's commits, and strays are left."""
    uncleaned: bool = False
    """The clean's time was over, and there is more to delete."""
    since: str | None = None
    """The sort key up to which a whole visit has settled every stray."""
    ahead_ms: int = 0
    """How far the watermark is ahead of the compactor's clock, because some clock was wrong: new
    deltas are strays.
    """


@dataclass(frozen=True, slots=True)
class Report:
    """What a compactor did.

    - lanes: how many it visited. folded, settled, cleaned: how many deltas. commits: transactions
      of fold and settle.
    - gave_up: lanes left to the next run because another compactor was there.
    - postponed: lanes whose clean waits. postponed_by: what it waits for, each Region or failure
      once.
    - conflicts: tokens of deltas that segments list with another change. The compactor kept them:
      look at them.
    - ahead: by how many milliseconds a lane's watermark is ahead of this clock, because some clock
      was wrong. Until that time comes, new changes there are strays.
    - problems: lanes that failed, with the error.
    """

    lanes: int = 0
    folded: int = 0
    settled: int = 0
    cleaned: int = 0
    commits: int = 0
    gave_up: int = 0
    postponed: int = 0
    postponed_by: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    ahead: Mapping[Lane, int] = field(default_factory=dict)
    problems: Mapping[Lane, LedgerError] = field(default_factory=dict)

    @classmethod
    def of(cls, lane: Lane, tally: Tally, failure: LedgerError | None = None) -> Report:
        """The report of one visit to one lane, which may have failed."""
        gave_up = isinstance(failure, GaveUp)
        return cls(
            **{name: getattr(tally, name) for name in ("folded", "settled", "cleaned", "commits")},
            lanes=1,
            gave_up=int(gave_up),
            postponed=int(bool(tally.postponed_by)),
            postponed_by=tuple(tally.postponed_by),
            conflicts=tuple(tally.conflicts),
            ahead={lane: tally.ahead_ms} if tally.ahead_ms else {},
            problems={} if failure is None or gave_up else {lane: failure},
        )

    @classmethod
    def total(cls, reports: Iterable[Report]) -> Report:
        """One report for many."""
        parts = list(reports)
        return cls(
            **{
                sums.name: sum(getattr(part, sums.name) for part in parts)
                for sums in fields(cls)
                if sums.default == 0
            },
            postponed_by=tuple(
                dict.fromkeys(reason for part in parts for reason in part.postponed_by)
            ),
            conflicts=tuple(token for p in parts for token in p.conflicts),
            ahead={lane: ms for p in parts for lane, ms in p.ahead.items()},
            problems={lane: error for p in parts for lane, error in p.problems.items()},
        )
