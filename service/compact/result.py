"""`Done`: what became of a job, with its own numbers and its own line.

Rule 1: It is written as the job goes on, so a job that fails has reported what came before.
Rule 2: A count is published also when it is zero: an alarm can then tell "none" from "not running".
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from compactor.named import Naming
from compactor.report import Tally
from compactor.verify import LaneCheck
from ledger.errors import DamagedItem, LedgerError
from service import observe
from service.job_queue import Message
from service.jobs import Evaluate, Job, Look, Settle, Sweep, Verify
from service.thresholds.evaluate import Evaluated

SHOWN = ("outcome", "folded", "settled", "cleaned", "commits")
CONFLICTS_SHOWN = 10


@dataclass(slots=True)
class Done(Tally):
    """outcome: looked, visited, settled, verified, evaluated, ended (another chain of visits goes on), put off,
    stopped, gave up, damaged, failed. error: what ended it. lost: why its messages stay on the queue. visited: it came
    to a visit, whatever that came to. tail: the changes above the watermark that it found; of those that are left,
    `fold_min` at most are counted. holds: the lane was seen to hold something. forgotten: the sweep found what a
    message should have asked for. naming: how far what was named is settled. sent: the jobs that it leaves for later.
    """

    outcome: str = "failed"
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

    def left_of(self, job: Job) -> Job:
        """What is left of the job, at this moment."""
        match job:
            case Settle() if self.naming is not None:
                return replace(job, named=self.naming.undone)
            case Look() | Sweep():
                return replace(job, since=self.since or job.since)
        return job

    def metrics(self, job: Job, *, tells: bool) -> dict[str, int]:
        """The numbers of a job. tells: whether this Region publishes crossings."""
        numbers = {
            observe.LANES_VISITED: int(self.visited),
            observe.LANES_LOOKED: int(not self.visited),
            observe.LANES_GAVE_UP: int(self.outcome == "gave up"),
            observe.LANES_FAILED: int(self.outcome == "failed" or self.lost is not None),
            observe.LANES_DAMAGED: int(self.outcome == "damaged"),
            observe.LANES_FORGOTTEN: int(self.forgotten),
            observe.DELTAS_FOLDED: self.folded,
            observe.STRAYS_SETTLED: self.settled,
            observe.DELTAS_CLEANED: self.cleaned,
            observe.DELTAS_CONFLICTING: len(self.conflicts),
            observe.CLEANS_POSTPONED: int(bool(self.postponed_by)),
            observe.VERIFIES_DROPPED: int(self.outcome == "stopped" and isinstance(job, Verify)),
        }
        if self.check is not None:
            numbers[observe.VERIFY_DIFFERENCES] = len(self.check.differences)
        if tells and isinstance(job, Evaluate):
            numbers[observe.CROSSINGS_TOLD] = self.evaluated.published
            numbers[observe.CROSSINGS_UNTOLD] = self.evaluated.unconfirmed
        if self.tail is not None:
            numbers[observe.TAIL_DELTAS] = self.tail
        if self.outcome == "stopped" and not isinstance(job, Verify):
            numbers[observe.STOPPED_TRIES] = job.tries + 1
        if self.visited or self.ahead_ms:
            numbers[observe.WATERMARK_AHEAD_MS] = self.ahead_ms
        return numbers

    def fields(self, job: Job) -> dict[str, Any]:
        """The fields of a job's log line, without amounts."""
        shown = {name: getattr(self, name) for name in SHOWN}
        more = {
            "postponed_by": self.postponed_by,
            "watermark_ahead_ms": self.ahead_ms,
            "conflicts": self.conflicts[:CONFLICTS_SHOWN],
            "again": len(self.sent),
            "crossings": self.evaluated.published,
            "tries": job.tries,
        }
        if self.outcome == "stopped":
            shown["dropped"] = isinstance(job, Verify)
        if (error := self.lost or self.error) is not None:
            # What is wrong with a damaged item may hold amounts; its key does not.
            reason = f"pk={error.pk!r}, sk={error.sk!r}" if isinstance(error, DamagedItem) else str(error)
            shown |= {"error": type(error).__name__, "reason": reason}
        return {"lane": str(job.lane)} | shown | {name: value for name, value in more.items() if value}

    def line(self, job: Job) -> tuple[str, str]:
        """The level and the text of a job's log line."""
        if self.lost is not None or self.error is not None:
            return "warning" if self.outcome == "gave up" else "error", "a visit did not come to its end"
        if self.outcome == "stopped":
            return "warning", "a visit did not fit its time"
        if self.visited or isinstance(job, Settle | Verify) or self.evaluated.published:
            return "info", "visit" if self.visited else self.outcome
        return "debug", "looked"
