"""The jobs Look, Sweep and Settle: what changes a lane.

Rule 1: Look first, because most rings come before there is enough to fold: one read unit. A job of
the sweep visits the whole lane.
Rule 2: A visit sends what is beyond its bounds at once, as a job of its own. A settle names again,
once, ASK_AGAIN_MS later, what it found above the watermark.
Rule 3: The visits of a busy lane follow each other: each sends the next look, with the version that
it left. At another version somebody else has visited since, and sent. This keeps tails short and
nothing else: what rang has its message.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from compactor.commit import begin
from compactor.inspection import Outlook, outlook
from compactor.known import KnownCovers
from compactor.settle_named import ASK_AGAIN_MS, Naming, settle_named
from compactor.visit import visit
from ledger.core import items, tokens
from ledger.core.requests import Get, Instant, Item, Now
from ledger.core.settings import Settings
from service.compact.outcome import Outcome
from service.compact.result import Done
from service.jobs import Look, Settle, Sweep
from service.runtime import Steps
from service.sqs import DELAY_S_MAX

BUSY_PER_S = 100
"""Changes a second of a lane whose visits follow each other.

Visits for rings alone would leave a tail of 75 s.
"""

SWEEP_BACK_MS = 7 * 86_400_000
"""How far back a sweep looks for strays, where nothing is cleaned.

It finds those whose messages were lost.
"""

AHEAD_BACK_MS = 3_600_000
"""The same of a look at a lane whose watermark is ahead: such looks come as often as rings."""

FORGOTTEN_TAILS, FORGOTTEN_MS = 16, 900_000
"""A tail of so many times fold_min that was due for so long: its message is lost, because the draws
of so many changes miss once in a million times."""


def look(job: Look, done: Done, settings: Settings, commits_max: int) -> Steps:
    """Visit the lane if that is due, or if changes may come in time below its watermark."""
    now_ms, due_for_ms, found = yield from _look(job, done, settings)
    if (
        job.follows is not None
        and found.checkpoint is not None
        and found.checkpoint.version > job.follows
    ):
        done.outcome = Outcome.ENDED
    elif due_for_ms < 0 and not found.below:
        # Rule 4: nobody names what comes in time below a watermark that is ahead, so every look
        # at such a lane visits it whole.
        done.outcome = Outcome.LOOKED
    else:
        yield from _visit(job, done, settings, commits_max, found, now_ms - AHEAD_BACK_MS)
        yield from _go_on(job, done, settings, found)


def sweep(job: Sweep, done: Done, settings: Settings, commits_max: int) -> Steps:
    """Visit the lane if there is anything to do."""
    now_ms, due_for_ms, found = yield from _look(job, done, settings)
    if due_for_ms < 0 and not found.below:
        if found.checkpoint is not None:
            done.outcome = Outcome.LOOKED
            return
        # It was never folded, or has lost its checkpoint: the beginning of a visit says which.
        done.visited = True
        if (yield from begin(job.lane)) is None:
            done.outcome = Outcome.VISITED
            return
    yield from _visit(job, done, settings, commits_max, found, now_ms - SWEEP_BACK_MS)
    is_long = done.folded >= FORGOTTEN_TAILS * settings.fold_min
    done.forgotten = done.settled > 0 or (is_long and due_for_ms >= FORGOTTEN_MS)
    yield from _go_on(job, done, settings, found)


def settle(
    job: Settle, done: Done, settings: Settings, commits_max: int, known: KnownCovers | None = None
) -> Steps:
    """Settle what is named. known: the covers that this process remembers.

    Name again what is above the watermark for the first time, however this ends.
    """
    done.holds, done.naming = True, Naming(job.named)
    try:
        yield from settle_named(
            job.lane,
            done,
            done.naming,
            fold_max=settings.fold_max,
            commits_max=commits_max,
            known=known,
        )
    finally:
        if done.naming.above and not job.again:
            done.send(Settle(job.lane, done.naming.above, again=True), ASK_AGAIN_MS // 1_000)
    done.outcome = Outcome.SETTLED
    if done.unsettled:
        done.send(Settle(job.lane, done.naming.undone, again=job.again))


def _look(
    job: Look | Sweep, done: Done, settings: Settings
) -> Generator[Any, Any, tuple[int, int, Outlook]]:
    """The time; for how long there has been enough to fold (below 0: there is not); and what the
    look found.
    """
    now: Instant = yield Now()
    found = yield from outlook(job.lane, settings, below=isinstance(job, Sweep), now_ms=now.wall_ms)
    done.tail, done.holds = found.tail, found.tail > 0 or found.checkpoint is not None
    if found.checkpoint is not None:
        done.ahead_ms = max(0, tokens.time_ms(found.checkpoint.watermark) - now.wall_ms)
    return now.wall_ms, -1 if found.fold_ms is None else now.wall_ms - found.fold_ms, found


def _visit(
    job: Look | Sweep,
    done: Done,
    settings: Settings,
    commits_max: int,
    found: Outlook,
    back_to_ms: int,
) -> Steps:
    """back_to_ms: where nothing is cleaned, the visit skips strays from before that."""
    done.visited = True
    young = None if settings.clean or back_to_ms < 0 else tokens.last_of(back_to_ms)
    since = max(filter(None, (young, job.since)), default=None)
    whole = found.below is not None
    yield from visit(job.lane, done, settings, commits_max=commits_max, whole=whole, since=since)
    done.outcome, done.tail = Outcome.VISITED, max(done.folded, found.tail)


def _go_on(job: Look | Sweep, done: Done, settings: Settings, found: Outlook) -> Steps:
    """Send what a visit leaves: the work beyond its bounds, or a busy lane's next visit."""
    if done.unsettled and found.below is not None:
        done.send(type(job)(job.lane, since=done.since or job.since))
    if done.unfolded:  # this job serves what rang, whoever commits meanwhile, so it follows nothing
        done.send(Look(job.lane))
        return
    if not done.folded or found.checkpoint is None:
        return
    item: Item | None = yield Get(items.checkpoint_key(job.lane))
    if item is None:
        return
    checkpoint = items.checkpoint_of(job.lane, item)
    # By the times in the tokens: of changes from long ago, too.
    took_ms = tokens.time_ms(checkpoint.watermark) - tokens.time_ms(found.checkpoint.watermark)
    if done.folded * 1_000 >= BUSY_PER_S * max(1, took_ms):
        pause_s = (
            0 if done.uncleaned else min(DELAY_S_MAX, -(-settings.allowed_lateness_ms // 1_000))
        )
        done.send(Look(job.lane, follows=checkpoint.version), pause_s)
