"""The program `rebuild`: a lane's checkpoint recomputed from its segments, after a restore or damage.

Rules: an operator's tool, run while no compactor works on the lane; everything is read strongly at home; the version is
above every version seen in checkpoint, segments and note, with an empty segment of its own so that `last` names a real
one; the clean note goes first, because its version may say something of a time that the restore undid; segments that
contradict each other are LaneDamaged, and nothing is written.
"""

from __future__ import annotations

from compactor.commit import write
from compactor.recount import recount
from ledger import items
from ledger.errors import LaneDamaged
from ledger.requests import Absent, DeleteMany, Get, Instant, Item, Now, Program, VersionIs
from ledger.values import Checkpoint, Lane, Segment


def rebuild(lane: Lane) -> Program[Checkpoint | None]:
    """Write a checkpoint that is the sum of the segments; None when there are none, and then no checkpoint either.

    Raises GaveUp (a compactor is at work), LaneDamaged and DamagedItem (nothing written), OutcomeUnknown.
    """
    item: Item | None = yield Get(items.checkpoint_key(lane))
    noted: Item | None = yield Get(items.note_key(lane))
    sums = yield from recount(lane)
    seen = items.version_of(item)
    if sums.watermark is None:
        if item is None:
            return None
        if seen == 1 and noted is None:  # half of the first commit: its deltas were never cleaned, so they are the tail
            yield DeleteMany((items.checkpoint_key(lane),))
            return None
        raise LaneDamaged(f"{lane}: there is a checkpoint but no segment to rebuild it from. Nothing was written.")
    version = max(sums.version, seen or 0, items.version_of(noted) or 0) + 1
    now: Instant = yield Now()
    checkpoint = Checkpoint(lane, sums.total, sums.count, sums.watermark, version, sums.watermark, now.wall_ms)
    unchanged = Absent() if item is None else None if seen is None else VersionIs(seen)
    yield DeleteMany((items.note_key(lane),))
    yield from write(checkpoint, Segment.of(lane, sums.watermark, version, ()), unchanged)
    return checkpoint
