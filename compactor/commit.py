"""`begin` and `commit`: the start and the end of every change to a checkpoint.

Rule 1: Begin comes before every commit, in fold and in settle alike.
Rule 2: A program with the checkpoint of version v has seen the segment of its commit, and so can
see all up to v.
Rule 3: A commit writes the checkpoint and its segment in one transaction, and only over the version
that `begin` saw.

Nothing here waits or locks: on any doubt the step gives up, and the next run starts again.
"""

from collections.abc import Sequence
from dataclasses import replace

from ledger.core import items
from ledger.core.conditions import Absent, All, Condition, Not
from ledger.core.days import Days
from ledger.core.entries import Entries
from ledger.core.errors import GaveUp, LaneDamaged, NotAllowed
from ledger.core.requests import Get, Instant, Item, Now, Program, Put, Transact
from ledger.core.values import Checkpoint, Lane, Segment
from ledger.lane import directory
from ledger.lane.tail import every_item

LOOKS_MAX = 5
"""How often `begin` looks for the last segment: the items of a transaction become visible one by
one.
"""

LANDING_MAX_MS = 300_000
"""A commit that has not landed after five minutes never will: the lane is damaged."""

NEVER = All((Absent(), Not(Absent())))
"""A put with this condition writes nothing. Its answer is the item that is there; while a
transaction holds the item the table refuses it (TransactionConflict). So it shows whether a commit
that was sent late is still landing."""


def _had_a_checkpoint(lane: Lane, segments: Sequence[Item]) -> Program[bool]:
    """Whether a lane without a checkpoint had one, which nobody removes.

    Only after a first commit there is a second segment, a version above 1, or a clean note.
    """
    if len(segments) > 1 or items.segment_of(lane, segments[0]).version > 1:
        return True
    return (yield Get(items.note_key(lane))) is not None


def begin(lane: Lane) -> Program[Checkpoint | None]:
    """The checkpoint, once `begin` has seen the segment of its last commit; None when nothing was
    ever folded.

    Raises GaveUp and TransactionConflict (a commit is still landing), LaneDamaged (half of it is
    gone, minutes later, or the checkpoint is), DamagedItem.
    """
    lost = False
    for _ in range(LOOKS_MAX):
        item: Item | None = yield Get(items.checkpoint_key(lane))
        if item is None:
            if lost:  # the proof was there before this read, and no commit takes a checkpoint away
                raise LaneDamaged(
                    f"{lane}: it has no checkpoint, though several commits were made; readers "
                    "count the tail alone. Nothing was written. Find out what removed it, then "
                    "rebuild the lane."
                )
            segments = yield from every_item(
                items.fold_pk(lane),
                items.SEGMENTS_FROM,
                items.SEGMENTS_UPTO,
                most=2,
                consistent=True,
            )
            if not segments:
                return None
            lost = yield from _had_a_checkpoint(lane, segments)
            if not lost:
                raise GaveUp(
                    f"{lane}: it has one segment, of version 1, and no checkpoint: the first "
                    "commit is landing. Nothing was written. If this error stays, half of that "
                    "commit is lost; readers still count every change. Then rebuild the lane."
                )
            continue
        checkpoint = items.checkpoint_of(lane, item)
        segment: Item | None = yield Get(
            items.segment_key(lane, checkpoint.last, checkpoint.version)
        )
        if segment is not None:
            return checkpoint
    if (yield from has_landed(checkpoint)):
        return checkpoint
    key = items.segment_key(lane, checkpoint.last, checkpoint.version)
    raise LaneDamaged(
        f"{lane}: the checkpoint's version {checkpoint.version} has no segment {key.sk!r} "
        "minutes after its commit. Nothing was written. Look at the lane, then rebuild it."
    )


def has_landed(checkpoint: Checkpoint) -> Program[bool]:
    """Whether the segment of a checkpoint, which nobody saw, is there after all; if not, it is lost
    for ever.

    Raises GaveUp and TransactionConflict while the rest of the commit may still come, and GaveUp
    where the role may not put. A clock that was ahead wrote a commit of a future time, so its time
    says nothing.
    """
    lane = checkpoint.lane
    now: Instant = yield Now()
    if abs(now.wall_ms - checkpoint.committed_ms) < LANDING_MAX_MS:
        raise GaveUp(
            f"{lane}: the commit of version {checkpoint.version} may still be landing. Nothing "
            "was written. Call again. Before a rebuild, stop the compactor and wait five minutes."
        )
    try:
        there = yield Put(
            items.segment_item(Segment.of(lane, checkpoint.last, checkpoint.version, ())), NEVER
        )
    except NotAllowed:
        raise GaveUp(
            f"{lane}: the segment of version {checkpoint.version} is missing: it is still landing, "
            "or it is lost. Nothing was written. Call again with a role that may put `fold#` "
            "items, which can find out which."
        ) from None
    return bool(there)


def commit(
    lane: Lane, before: Checkpoint | None, entries: Entries, *, hi: str, watermark: str, now_ms: int
) -> Program[Checkpoint]:
    """Add `entries` to the checkpoint and file them in a segment under `hi`; before its first
    commit, list the lane.

    Raises GaveUp when the checkpoint is no longer at the version of `before`, LaneDamaged, and
    OutcomeUnknown.
    """
    version = before.version + 1 if before else 1
    if before is None:
        yield Put(directory.item_of(lane))
    try:
        segment = Segment(lane, hi, version, entries)
        after = Checkpoint(
            lane,
            total=(before.total if before else 0) + entries.total,
            count=(before.count if before else 0) + len(entries),
            watermark=watermark,
            version=version,
            last=hi,
            committed_ms=now_ms,
        )
        # Rule 4: the total and its days get the same changes, in one item; a stray goes to the day
        # of its token. Nobody guesses the days of a checkpoint that has none.
        days = before.days if before else Days()
        if days is not None:
            after = with_days(after, days.plus(entries))
    except ValueError as error:
        raise past_the_limits(lane, error) from None
    yield from write(after, segment, items.version_is(before.version) if before else Absent())
    return after


def with_days(checkpoint: Checkpoint, days: Days) -> Checkpoint:
    """The checkpoint with these days, as coarse as its first KB needs.

    Raises ValueError when they sum to others.
    """
    return replace(checkpoint, days=days.fitted(items.room_for_days(checkpoint)))


def past_the_limits(lane: Lane, error: ValueError) -> LaneDamaged:
    """The error for a checkpoint so near a limit (a version of ten nines) that none can follow:
    somebody edited it.
    """
    return LaneDamaged(
        f"{lane}: no checkpoint can follow the one in the table: {error}. Nothing was written. "
        "Look at the lane's checkpoint, note and segments, then rebuild it."
    )


def write(checkpoint: Checkpoint, segment: Segment, unchanged: Condition | None) -> Program[None]:
    """Write the transaction of a commit. The version decides between two compactors.

    Raises GaveUp when a condition failed, and OutcomeUnknown.
    """
    refused = yield Transact(
        (
            Put(items.checkpoint_item(checkpoint), unchanged),
            Put(items.segment_item(segment), Absent()),  # half of a lost commit may have this place
        )
    )
    if refused is not None:
        raise GaveUp(
            f"{checkpoint.lane}: another compactor committed version {checkpoint.version}. "
            "Nothing was written; the next run goes on. If this error stays, a half of a lost "
            "commit is in the way: rebuild the lane."
        )
