"""One message of the work queue: visit the lane and write into its mark what is left, or verify the lane.

Rule 1: The mark is read, strongly, before the visit and written after it.
Rule 2: A message whose mark is no longer held was served already.
Rule 3: A visit is stopped between two requests when time is short, and what it committed stays.
Rule 4: A failure of the table leaves the mark held, so the message is retried by the queue, and the lane planned again
after the lease.
"""

from collections.abc import Callable
from dataclasses import dataclass

from compactor.outlook import Outlook, outlook
from compactor.report import Tally
from compactor.verify import LaneCheck, verify
from compactor.visit import visit
from ledger.errors import DamagedItem, GaveUp, LaneDamaged, ReadTooSlow
from ledger.requests import Get, Instant, Item, Now
from ledger.settings import Settings
from service.marks import QUIET_MS, Hold, Steps, after_visit, key_of, mark_of
from service.runtime import OutOfTime, until
from service.work import Work

COMMITS_OF_VISIT = 20
"""Commits of fold, and of settle, in one visit: a huge backlog gets its turns as every other lane does."""

DAMAGED_MS = 3_600_000
"""How long a damaged lane is left alone before it is tried again."""

CLEAN_AFTER_MS = 1_000
"""Beyond `keep`, so that the visit that cleans does not come a moment too early."""

CLEAN_AGAIN_MS = 60_000
"""After a clean that did not come to its end, because its time was over or the table was throttled."""

NOTE_AFTER_MS = 60_000
"""After a commit: by then the other Regions have usually received it, so that a visit can note it."""


@dataclass(slots=True)
class Done(Tally):
    """What became of one message; written as it happens, so that a failure has told of what came before it.

    outcome: visited, gave up, stopped, damaged, served (by an earlier message), verified; failed until it is known.
    lag_ms: how long the lane had been due. tail: the deltas above the watermark that it found; of those that are left,
    `fold_min` at most are counted.
    """

    outcome: str = "failed"
    lag_ms: int | None = None
    tail: int | None = None
    next_ms: int | None = None
    check: LaneCheck | None = None


def next_visit(found: Outlook, tally: Tally, settings: Settings, now_ms: int) -> int | None:
    """When the lane has something to do again, as far as can be seen now; None: when the next delta comes."""
    times = []
    if tally.unsettled:
        times.append(now_ms)
    if tally.uncleaned:
        times.append(now_ms + CLEAN_AGAIN_MS)
    if found.fold_ms is not None:
        times.append(max(now_ms, found.fold_ms))
    if found.below and settings.clean:
        keep_ms = settings.keep_ms + CLEAN_AFTER_MS
        if found.noted_ms is None:
            times.append(now_ms + (keep_ms if tally.postponed_by else min(NOTE_AFTER_MS, keep_ms)))
        else:  # an older note has had its clean in this visit; what it left (another change listed) can wait
            noted_ms = min(found.noted_ms, now_ms)  # a note from the future is renewed
            times.append(noted_ms + keep_ms if now_ms < noted_ms + keep_ms else now_ms + keep_ms)
    return min(times, default=None)


def handle(
    work: Work, done: Done, settings: Settings, stop: Callable[[], bool], *, commits_max: int = COMMITS_OF_VISIT
) -> Steps:
    """Raises LaneDamaged, DamagedItem (the lane is held for a while) and the TableErrors: retry the message."""
    return _verify(work, done, settings, stop) if work.verify else _visit(work, done, settings, stop, commits_max)


def _visit(work: Work, done: Done, settings: Settings, stop: Callable[[], bool], commits_max: int) -> Steps:
    lane = settings.known(work.lane)
    item: Item | None = yield Get(key_of(lane))
    mark = mark_of(item) if item is not None else None
    if work.planned and (mark is None or mark.held_ms is None):
        done.outcome = "served"
        return
    began: Instant = yield Now()
    if mark is not None and mark.wake_ms:
        done.lag_ms = max(0, began.wall_ms - mark.wake_ms)
    done.next_ms = began.wall_ms  # unless the visit comes to its end
    try:
        yield from until(visit(lane, done, settings, commits_max=commits_max), stop)
        found = yield from until(outlook(lane, settings), stop)
    except OutOfTime:
        done.outcome = "stopped"
    except GaveUp:
        done.outcome = "gave up"
    except (LaneDamaged, DamagedItem):
        done.outcome, done.next_ms = "damaged", began.wall_ms + DAMAGED_MS
        yield Hold(lane, done.next_ms)
        raise
    else:
        now: Instant = yield Now()
        done.outcome, done.tail = "visited", done.folded + found.tail
        done.next_ms = next_visit(found, done, settings, now.wall_ms)
    again_ms = began.wall_ms + max(QUIET_MS, settings.allowed_lateness_ms)
    yield from after_visit(lane, mark, began_ms=began.wall_ms, again_ms=again_ms, next_ms=done.next_ms)


def _verify(work: Work, done: Done, settings: Settings, stop: Callable[[], bool]) -> Steps:
    lane = settings.known(work.lane)
    try:
        done.check = yield from until(verify(lane, read_time_max_ms=settings.read_time_max_ms), stop)
        done.outcome = "verified"
    except OutOfTime:
        done.outcome = "stopped"
    except (GaveUp, ReadTooSlow):  # a commit was landing, or the tail is long: another pass of find picks it
        done.outcome = "gave up"
    except (LaneDamaged, DamagedItem):
        done.outcome = "damaged"
        raise
