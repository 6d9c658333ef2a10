"""The program `rebuild`: a lane's checkpoint recomputed from its segments, after a restore or damage.

Rules: an operator's tool, run while no compactor works on the lane; everything is read strongly at home; the version is
above every version seen in checkpoint, segments and note, with an empty segment of its own so that `last` names a real
one; the clean note goes first, because its version may say something of a time that the restore undid; segments that
contradict each other are LaneDamaged, and nothing is written.
"""

from __future__ import annotations

from compactor.commit import LANDING_MAX_MS, past_the_limits, write
from compactor.recount import recount
from ledger import items
from ledger.errors import DamagedItem, GaveUp, LaneDamaged, LedgerError
from ledger.requests import Absent, DeleteMany, Get, Instant, Item, Now, Program, VersionIs
from ledger.values import Checkpoint, Lane, Segment


def rebuild(lane: Lane) -> Program[Checkpoint | None]:
    """Write a checkpoint that is the sum of the segments; None when there are none, and then no checkpoint either.

    Raises GaveUp (a compactor is at work, or was minutes ago), LaneDamaged and DamagedItem (nothing written), and
    OutcomeUnknown.
    """
    item: Item | None = yield Get(items.checkpoint_key(lane))
    yield from _give_up_on_a_landing_commit(lane, item)
    noted: Item | None = yield Get(items.note_key(lane))
    sums = yield from recount(lane)
    seen = items.version_of(item)
    if sums.watermark is None:
        if item is None:
            return None
        if seen == 1 and noted is None:  # half of the first commit: its deltas were never cleaned, so they are the tail
            yield from _delete(lane, item)
            return None
        raise LaneDamaged(f"{lane}: there is a checkpoint but no segment to rebuild it from. Nothing was written.")
    version = max(sums.version, seen or 0, items.version_of(noted) or 0) + 1
    now: Instant = yield Now()
    try:
        checkpoint = Checkpoint(lane, sums.total, sums.count, sums.watermark, version, sums.watermark, now.wall_ms)
    except ValueError as error:
        raise past_the_limits(lane, error) from None
    unchanged = Absent() if item is None else None if seen is None else VersionIs(seen)
    if noted is not None:
        yield from _delete(lane, noted)
    yield from write(checkpoint, Segment.of(lane, sums.watermark, version, ()), unchanged)
    return checkpoint


def _delete(lane: Lane, item: Item) -> Program[None]:
    """Delete an item as it was read. Raises GaveUp when it has changed: somebody is at work."""
    (answer,) = yield DeleteMany((item,))
    if isinstance(answer, LedgerError):
        raise answer
    if answer is not None:
        raise GaveUp(f"{lane}: {item['sk']['S']} changed meanwhile. Stop the compactor, then rebuild the lane again.")


def _give_up_on_a_landing_commit(lane: Lane, item: Item | None) -> Program[None]:
    """A young checkpoint whose segment is not there may be half of a commit that is still landing, not damage."""
    try:
        checkpoint = items.checkpoint_of(lane, item) if item is not None else None
    except DamagedItem:
        return
    if checkpoint is None:
        return
    segment: Item | None = yield Get(items.segment_key(lane, checkpoint.last, checkpoint.version))
    if segment is not None:
        return
    now: Instant = yield Now()
    if now.wall_ms - checkpoint.committed_ms < LANDING_MAX_MS:
        raise GaveUp(
            f"{lane}: version {checkpoint.version} may still be landing. Stop the compactor, wait five minutes."
        )
