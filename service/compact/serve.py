"""What the work queue says of one lane: look, and do what is to be done.

Rule 1: Look first, because most rings come before there is enough to fold: one read unit. What is named is settled in
any case, and what the sweep sends is visited whole.
Rule 2: What has to be done later is sent again before the message is done with: named items above the watermark, a
visit that reached a bound. `Done.left` says at every moment what is left of the message, so whoever is stopped or fails
goes on behind what was done.
Rule 3: The visits of a busy lane follow each other: each sends the next one's message, with the version that it left.
At another version somebody else visited since, and sent. It saves tails alone: what rang has a message of its own.
Rule 4: Thresholds are evaluated last, so that they see what was settled, and what they wait for keeps nobody else.
Rule 5: No failure of the table fails a message: it is sent again, later and later. What is damaged waits for a person
in the DLQ. Only a message that could not be sent leaves its own to the queue.
Rule 6: Two are not sent again: a verify that did not fit its time, because it would not fit the next time either, and
what only folds in a lane that gave up until the wait was the longest, because the next ring or sweep stands for it.
Rule 7: Of a lane whose watermark is ahead nobody names what comes in time below it, so every look visits it whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from compactor.named import ASK_AGAIN_MS, Naming, settle_named
from compactor.outlook import Outlook, outlook
from compactor.report import Tally
from compactor.verify import LaneCheck, verify
from compactor.visit import visit
from ledger import items, tokens
from ledger.errors import DamagedItem, GaveUp, LaneDamaged, LedgerError, ReadTooSlow
from ledger.requests import Get, Instant, Item, Now
from ledger.settings import Settings
from service.runtime import OutOfTime, Steps, until
from service.work import DELAY_S_MAX, NOTHING, Bury, Message, Send, Work, verify_of
from thresholds import Evaluated, evaluate

COMMITS_OF_VISIT = 20
"""Commits of fold, and of settle, in one visit: a huge backlog gets its turns as every other lane does."""

BUSY_PER_S = 100
"""Changes a second of a lane whose visits follow each other. Visits for rings alone would leave a tail of 75 s."""

TRY_AGAIN_S = 30
"""After a first failure; twice as long after each further one, up to DELAY_S_MAX."""

SWEEP_BACK_MS = 7 * 86_400_000
"""How far back a sweep looks for strays where nothing is cleaned: it is for those whose messages were lost."""

AHEAD_BACK_MS = 3_600_000
"""The same of a look at a lane whose watermark is ahead: such looks come as often as rings."""

FORGOTTEN_TAILS, FORGOTTEN_MS = 16, 900_000
"""A tail of so many times fold_min that might have been folded so long ago was told by no message: the draws of so many
changes miss once in a million times."""


@dataclass(slots=True)
class Done(Tally):
    """What became of a lane's messages; written as it happens, so that a failure has told of what came before it.

    outcome: looked, visited, settled, verified, ended (others' visits follow each other), evaluated, gave up, stopped,
    damaged, failed. error: what ended it. visited: it came to a visit, whatever that came to. tail: the changes above
    the watermark that it found; of those that are left, `fold_min` at most are counted. empty: whether there is nothing
    in the lane, which may have a gate; None: nobody looked. forgotten: the sweep found what a message should have told.
    unverified: a verify did not fit its time. left: what is left of the message. sent: what is to be done later.
    """

    outcome: str = "failed"
    error: LedgerError | None = None
    visited: bool = False
    tail: int | None = None
    empty: bool | None = None
    forgotten: bool = False
    unverified: bool = False
    check: LaneCheck | None = None
    evaluated: Evaluated = field(default_factory=Evaluated)
    left: Work = field(init=False)
    sent: list[Message] = field(default_factory=list)


def serve(
    work: Work,
    done: Done,
    settings: Settings,
    stop: Callable[[], bool],
    *,
    commits_max: int = COMMITS_OF_VISIT,
) -> Steps:
    """Do what the messages of a lane ask for. Raises LedgerError if what is left could not be put on a queue."""
    done.left = work
    try:
        yield from until(_serve(work, done, settings, commits_max), stop)
    except OutOfTime:
        done.outcome, done.unverified = "stopped", done.left.only_verifies
        if not done.unverified:
            _again(done.left, done, _wait_s(work.tries - 1) if work.tries else 0)
    except (LaneDamaged, DamagedItem) as damage:
        done.outcome, done.error = "damaged", damage
        for part in done.left.apart():
            yield Bury(part.to_json())
    except LedgerError as failure:
        yield from try_again(done.left, done, failure)
        return
    yield from _send(done)


def try_again(work: Work, done: Done, failure: LedgerError) -> Steps:
    """Send a message again, because of this failure. Raises LedgerError if it could not be put on the queue."""
    done.outcome, done.error = "gave up" if isinstance(failure, GaveUp) else "failed", failure
    wait_s = _wait_s(work.tries)
    if not (done.outcome == "gave up" and work.only_folds and wait_s == DELAY_S_MAX):
        _again(work, done, wait_s)
    yield from _send(done)


def _wait_s(tries: int) -> int:
    return min(DELAY_S_MAX, TRY_AGAIN_S << min(tries, 10))


def _again(work: Work, done: Done, wait_s: int) -> None:
    done.sent.append(Message(replace(work, since=done.since or work.since, tries=work.tries + 1), wait_s))


def _send(done: Done) -> Steps:
    if done.sent:
        parts = (Message(work, message.delay_s) for message in done.sent for work in message.work.apart())
        answers: tuple[LedgerError | None, ...] = yield Send(tuple(parts))
        for lost in filter(None, answers):
            raise lost


def _serve(work: Work, done: Done, settings: Settings, commits_max: int) -> Steps:
    work = replace(work, lane=settings.known(work.lane))
    if work.only_verifies:
        yield from _verify(work, done, settings)
    elif work.verify:
        done.sent.append(verify_of(work.lane))
        done.left = replace(done.left, verify=False)
    if work.late or work.again:
        yield from _settle(work, done, settings, commits_max)
    if work.fold or work.sweep:
        yield from _fold(work, done, settings, commits_max)
        done.left = replace(done.left, fold=False, sweep=False, follows=None, since=None)
    if work.thresholds:
        yield from evaluate(work.lane.counter, settings, done.evaluated)
        done.outcome = "visited" if done.visited else "evaluated"


def _settle(work: Work, done: Done, settings: Settings, commits_max: int) -> Steps:
    """Settle what is named; what is above the watermark for the first time is named again."""
    bound = {"fold_max": settings.fold_max, "commits_max": commits_max}
    late, again = Naming(work.late), Naming(work.again)
    done.empty = False
    try:
        for naming in (late, again):
            if not done.unsettled:
                yield from settle_named(work.lane, done, naming, **bound)
    finally:
        done.left = replace(done.left, late=late.undone, again=again.undone)
        if late.above:
            done.sent.append(Message(Work(work.lane, again=late.above, fold=False), ASK_AGAIN_MS // 1_000))
    done.outcome = "settled"
    if done.unsettled:
        done.unsettled = False
        done.sent.append(Message(Work(work.lane, late=late.undone, again=again.undone, fold=False)))
        done.left = replace(done.left, late=NOTHING, again=NOTHING)


def _fold(work: Work, done: Done, settings: Settings, commits_max: int) -> Steps:
    """Look, and visit the lane if there is something to do."""
    now: Instant = yield Now()
    found = yield from outlook(work.lane, settings, below=work.sweep, now_ms=now.wall_ms)
    done.tail, done.empty = found.tail, not found.tail and found.checkpoint is None
    if found.checkpoint is not None:
        done.ahead_ms = max(0, tokens.time_ms(found.checkpoint.watermark) - now.wall_ms)
    if work.follows is not None and found.checkpoint is not None and found.checkpoint.version > work.follows:
        done.outcome = "ended"
        return
    due_ms = None if found.fold_ms is None else now.wall_ms - found.fold_ms
    is_due = due_ms is not None and due_ms >= 0
    if not is_due and not found.below and not (work.sweep and found.checkpoint is None):
        done.outcome = "looked"
        return
    done.visited = True
    settled, back_ms = done.settled, now.wall_ms - (SWEEP_BACK_MS if work.sweep else AHEAD_BACK_MS)
    young = None if settings.clean or back_ms < 0 else tokens.last_of(back_ms)
    since = max(filter(None, (young, work.since)), default=None)
    whole = found.below is not None
    yield from visit(work.lane, done, settings, commits_max=commits_max, whole=whole, since=since)
    done.outcome, done.tail = "visited", max(done.folded, found.tail)
    if work.sweep:
        many = done.folded >= FORGOTTEN_TAILS * settings.fold_min
        done.forgotten = done.settled > settled or (many and due_ms is not None and due_ms >= FORGOTTEN_MS)
    yield from _go_on(work, done, settings, found)


def _go_on(work: Work, done: Done, settings: Settings, found: Outlook) -> Steps:
    """Send what a visit leaves: what is beyond its bounds, or a busy lane's next visit."""
    if done.unsettled and found.below is not None:
        done.sent.append(Message(Work(work.lane, sweep=work.sweep, since=done.since or work.since)))
    if done.unfolded:  # what rang is served by this message, whoever commits meanwhile: it follows nothing
        done.sent.append(Message(Work(work.lane)))
        return
    if not done.folded:
        return
    item: Item | None = yield Get(items.checkpoint_key(work.lane))
    if item is None:
        return
    checkpoint = items.checkpoint_of(work.lane, item)
    if _is_busy(found, checkpoint.watermark, done.folded):
        wait_s = 0 if done.uncleaned else min(DELAY_S_MAX, -(-settings.allowed_lateness_ms // 1_000))
        done.sent.append(Message(Work(work.lane, follows=checkpoint.version), wait_s))


def _is_busy(found: Outlook, watermark: str, folded: int) -> bool:
    """By the times in the tokens: of changes from long ago, too."""
    if found.checkpoint is None:
        return False
    took_ms = tokens.time_ms(watermark) - tokens.time_ms(found.checkpoint.watermark)
    return folded * 1_000 >= BUSY_PER_S * max(1, took_ms)


def _verify(work: Work, done: Done, settings: Settings) -> Steps:
    try:
        done.check = yield from verify(work.lane, read_time_max_ms=settings.read_time_max_ms)
        done.outcome = "verified"
    except (GaveUp, ReadTooSlow):  # a commit was landing, or the tail is long: another pass of the sweep picks it
        done.outcome = "gave up"
