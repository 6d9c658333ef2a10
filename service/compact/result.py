"""`Done`: the result of a job, with its numbers and its log line.

Rule 1: A job writes it as it goes on, so a job that fails has reported what it did before.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from compactor.report import Tally
from ledger.core.errors import DamagedItem, LaneDamaged, LedgerError
from ledger.core.settings import Settings
from service.compact.outcome import Outcome
from service.job_queue import Message
from service.jobs import Evaluate, Job, Look, Settle, Sweep, Verify
from service.thresholds.event_bus import Evaluated

if TYPE_CHECKING:
    from compactor.settle_named import Naming
    from compactor.verify import LaneCheck

SHOWN = ("folded", "settled", "cleaned", "commits", "tail")
CONFLICTS_SHOWN = 10
COUNTED = tuple(dict.fromkeys(outcome.metric for outcome in Outcome if outcome.metric))


@dataclass(slots=True, kw_only=True)
class Done(Tally):
    """job: of a batch. ids: of the messages that request it. error: what ended it. lost: why its
    messages stay on the queue. visited: it began a visit, however that ended. tail: the changes
    above the watermark that it found; of those that are left it counts at most `fold_min`. holds:
    it saw that the lane holds something. forgotten: the sweep found work that no message requested.
    naming: how far it settled what was named. sent: the jobs that it leaves for later.
    """

    job: Job
    ids: set[str] = field(default_factory=set)
    outcome: Outcome = Outcome.FAILED
    error: LedgerError | None = None
    lost: Exception | None = None
    visited: bool = False
    tail: int | None = None
    holds: bool = False
    forgotten: bool = False
    check: LaneCheck | None = None
    naming: Naming | None = None
    evaluated: Evaluated = field(default_factory=Evaluated)
    sent: list[Message] = field(default_factory=list)

    def send(self, job: Job, delay_s: int = 0) -> None:
        """Have a job done later."""
        self.sent.append(Message(job, delay_s))

    @property
    def left(self) -> Job:
        """The rest of the job, at this moment."""
        match self.job:
            case Settle() as job if self.naming is not None:
                return replace(job, named=self.naming.undone)
            case Look() | Sweep() as job:
                return replace(job, since=self.since or job.since)
        return self.job

    def metrics(self, settings: Settings) -> dict[str, int]:
        """The numbers of the job, also those that are 0: so an alarm can distinguish "none" from
        "not running".
        """
        is_verify, is_stopped = isinstance(self.job, Verify), self.outcome is Outcome.STOPPED
        counted = {self.outcome.metric}
        if self.lost is not None:
            counted.add(Outcome.FAILED.metric)
        numbers: dict[str, int | None] = {
            "LanesVisited": int(self.visited),
            "LanesLooked": int(not self.visited),
            **{metric: int(metric in counted) for metric in COUNTED},
            "LanesForgotten": int(self.forgotten),
            "LanesUnread": int(self.is_unread(settings)),
            "DeltasFolded": self.folded,
            "StraysSettled": self.settled,
            "DeltasCleaned": self.cleaned,
            "DeltasConflicting": len(self.conflicts),
            "CleansPostponed": int(bool(self.postponed_by)),
            "VerifiesDropped": int(is_stopped and is_verify),
            "VerifyDifferences": None if self.check is None else len(self.check.differences),
            "TailDeltas": self.tail,
            "StoppedTries": self.job.tries + 1 if is_stopped and not is_verify else None,
            "WatermarkAheadMs": self.ahead_ms if self.visited or self.ahead_ms else None,
        }
        if settings.tells and isinstance(self.job, Evaluate):
            numbers |= {
                "CrossingsTold": self.evaluated.published,
                "CrossingsUntold": self.evaluated.unconfirmed,
            }
        return {name: number for name, number in numbers.items() if number is not None}

    def is_unread(self, settings: Settings) -> bool:
        return self.holds and not settings.reads(self.job.lane)

    def fields(self) -> dict[str, Any]:
        """The fields of the job's log line, without amounts."""
        shown: dict[str, Any] = {"lane": str(self.job.lane), "outcome": self.outcome.text}
        shown |= {name: getattr(self, name) for name in SHOWN}
        if (error := self.lost or self.error) is not None:
            shown |= {"error": type(error).__name__, "reason": _without_amounts(error)}
        more = {
            "postponed_by": self.postponed_by,
            "watermark_ahead_ms": self.ahead_ms,
            "conflicts": self.conflicts[:CONFLICTS_SHOWN],
            "tries": self.job.tries,
        }
        return shown | {name: value for name, value in more.items() if value}

    def line(self) -> tuple[str, str]:
        """The level and the text of the job's log line."""
        says_nothing = {
            Outcome.EVALUATED: not self.evaluated.published,
            Outcome.RETIRED: not isinstance(self.job, Settle | Verify),
        }
        outcome = self.outcome
        if (self.lost or self.error) is not None and outcome is not Outcome.GAVE_UP:
            outcome = Outcome.FAILED
        elif says_nothing.get(outcome):
            outcome = Outcome.LOOKED
        return outcome.level, outcome.says


def _without_amounts(error: Exception) -> str:
    """The text of an error; of what is damaged the key, or where to see it, because such a text
    may hold amounts.
    """
    if isinstance(error, DamagedItem):
        return f"pk={error.pk!r}, sk={error.sk!r}"
    return (
        "the lane is damaged: `ledgerctl verify` says how"
        if isinstance(error, LaneDamaged)
        else str(error)
    )
