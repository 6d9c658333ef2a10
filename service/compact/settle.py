"""The job Settle: what came late is settled by name.

Rule 1: What is above the watermark for the first time is named again, ASK_AGAIN_MS later, whatever end this comes to.
Rule 2: What is beyond the bound of a visit is named anew at once.
"""

from __future__ import annotations

from compactor.named import ASK_AGAIN_MS, Naming, settle_named
from ledger.settings import Settings
from service.compact.done import Done
from service.jobs import Settle
from service.runtime import Steps


def settle(job: Settle, done: Done, settings: Settings, commits_max: int) -> Steps:
    done.holds, done.naming = True, Naming(job.named)
    try:
        yield from settle_named(job.lane, done, done.naming, fold_max=settings.fold_max, commits_max=commits_max)
    finally:
        if done.naming.above and not job.again:
            done.send(Settle(job.lane, done.naming.above, again=True), ASK_AGAIN_MS // 1_000)
    done.outcome = "settled"
    if done.unsettled:
        done.send(Settle(job.lane, done.naming.undone, again=job.again))
