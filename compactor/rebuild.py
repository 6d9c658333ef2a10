"""The program `rebuild` recomputes a lane's checkpoint from its segments, after a restore or
damage.

Rule 1: It is an operator's tool, for when no compactor works on the lane. It reads everything
strongly at home.
Rule 2: If compactors went on while half of a lost commit was there, segments overlap: one of two is
an orphan, and the rebuild undoes it.
Rule 3: A change is listed or a delta at every moment, so you can repeat a rebuild that ended
half-way.
"""

from contextlib import suppress

from compactor.commit import has_landed, past_the_limits, with_days, write
from compactor.listing import changed_by
from compactor.recount import Overlap, Recount, recount
from ledger.core import items, tokens
from ledger.core.conditions import Absent
from ledger.core.days import Days
from ledger.core.errors import DamagedItem, GaveUp, LaneDamaged, LedgerError, TokenConflict
from ledger.core.requests import DeleteMany, Get, Instant, Item, Now, Program, keyed
from ledger.core.values import Checkpoint, Delta, Lane, Segment
from ledger.lane.add import add_many
from ledger.lane.tail import Tail

ORPHANS_MAX = 1_000
"""The most orphans that one rebuild undoes; it reads all segments to find each."""


def rebuild(lane: Lane) -> Program[Checkpoint | None]:
    """Write a checkpoint that is the sum of the segments. None when there are no segments: then
    there is none either.

    Raises GaveUp (a compactor is at work, or was minutes ago), LaneDamaged, DamagedItem,
    OutcomeUnknown and the other TableErrors. Then no checkpoint was written; run it again before a
    compactor runs.
    """
    item: Item | None = yield Get(items.checkpoint_key(lane))
    before: Checkpoint | None = None
    with suppress(DamagedItem):
        before = items.checkpoint_of(lane, item) if item is not None else None
    if before is not None:
        segment: Item | None = yield Get(items.segment_key(lane, before.last, before.version))
        if segment is None:
            yield from has_landed(before)
    noted: Item | None = yield Get(items.note_key(lane))
    sums, undone, unlisted = yield from _resolve(lane, before)
    seen = items.version_of(item)
    if sums.watermark is None:
        if item is None:
            return None
        # Half of the first commit, whose deltas nobody cleaned; or every delta that the checkpoint
        # counts is there.
        if (seen == 1 and noted is None) or (
            before is not None and (yield from _all_there(before))
        ):
            yield from _delete(lane, item, noted)  # they are the tail again
            return None
        raise _no_segment(lane)
    # Above every version that anybody saw, with an empty segment of its own: `last` names a real
    # one.
    listed = (sums.version, *(orphan.version for orphan in undone))
    version = max(*listed, seen or 0, items.version_of(noted) or 0) + 1
    now: Instant = yield Now()
    try:
        bare = Checkpoint(
            lane, sums.total, sums.count, sums.watermark, version, sums.watermark, now.wall_ms
        )
        checkpoint = with_days(bare, Days.of(sums.by_day))
    except ValueError as error:
        raise past_the_limits(lane, error) from None
    unchanged = Absent() if item is None else None if seen is None else items.version_is(seen)
    # Rule 3: what only an orphan lists is a delta again before the orphan goes. The clean note
    # goes, too: its version may be of a time that the restore undid.
    yield from _put_back(lane, unlisted)
    orphans = (keyed(items.segment_key(lane, orphan.hi, orphan.version)) for orphan in undone)
    yield from _delete(lane, noted, *orphans)
    yield from write(checkpoint, Segment.of(lane, sums.watermark, version, ()), unchanged)
    return checkpoint


def _no_segment(lane: Lane) -> LaneDamaged:
    why = f"{lane}: it has a checkpoint, and no segment to rebuild that from. Nothing was written."
    return LaneDamaged(f"{why} Restore its segments from a backup.")


def _delete(lane: Lane, *given: Item | None) -> Program[None]:
    """Delete items as they were read.

    Raises GaveUp when one has changed, because somebody is at work.
    """
    present = tuple(item for item in given if item is not None)
    for answer in (yield DeleteMany(present)) if present else ():
        if isinstance(answer, LedgerError):
            raise answer
        if answer is not None:
            raise GaveUp(
                f"{lane}: it changed meanwhile. No checkpoint was written. Stop its compactor, "
                "then retry."
            )


def _all_there(checkpoint: Checkpoint) -> Program[bool]:
    """Whether the deltas at or below the watermark are what the checkpoint counts."""
    found = yield from Tail(checkpoint.lane, None, checkpoint.watermark, consistent=True).take()
    return (len(found), sum(map(changed_by, found))) == (checkpoint.count, checkpoint.total)


def _resolve(
    lane: Lane, before: Checkpoint | None
) -> Program[tuple[Recount, list[Segment], list[Delta]]]:
    """Leave out one of two segments that overlap, until none do. It returns the sums of the others,
    the orphans, and the deltas that only these list. It writes nothing.
    """
    orphans: list[Segment] = []
    unlisted: list[Delta] = []
    for _ in range(ORPHANS_MAX):
        try:
            return (yield from recount(lane, without=orphans)), orphans, unlisted
        except Overlap as overlap:
            orphan, stands = sorted(
                overlap.segments, key=lambda segment: _standing(segment, before)
            )
        listed = dict(stands)
        orphans.append(orphan)
        unlisted += [
            Delta(lane, tokens.from_bytes(t), change) for t, change in orphan if t not in listed
        ]
    raise LaneDamaged(
        f"{lane}: more than {ORPHANS_MAX} segments overlap. Nothing was written. Restore the lane."
    )


def _standing(segment: Segment, before: Checkpoint | None) -> tuple[bool, bool, int, str]:
    """The rank of a segment: of two that overlap the rebuild undoes the lower. That is one of a
    version that the checkpoint has not reached, rather than an older one, rather than the one that
    the checkpoint names. No choice loses a change; this one undoes few.
    """
    reached = before is not None and segment.version <= before.version
    named = before is not None and (segment.hi, segment.version) == (before.last, before.version)
    return reached, named, segment.version, segment.hi


def _put_back(lane: Lane, unlisted: list[Delta]) -> Program[None]:
    """Put deltas again, as a retry does: clean deletes those that are listed; the others are in
    the tail, or strays.
    """
    if not unlisted:
        return
    for outcome in (yield from add_many(unlisted)):
        if isinstance(outcome, TokenConflict):
            raise LaneDamaged(
                f"{lane}: of two segments that overlap, one lists a delta with another change than "
                f"the table has: {outcome} No checkpoint was written. Only a person can say which "
                "change is right: correct the other."
            )
        if isinstance(outcome, LedgerError):
            raise outcome
