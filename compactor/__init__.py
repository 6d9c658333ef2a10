"""Exact counters on Amazon DynamoDB: the compactor. Contents:

Compactor   cleans, folds and settles      Report        what it did
            verifies and rebuilds          Verification  a counter recounted

Theory of operation. A lane has deltas, which anybody puts and nobody changes, and three kinds of
items that only the compactor of its home Region writes: one checkpoint (total, count, watermark,
version), a segment for each commit (which deltas it counted), and one clean note. A value is the
checkpoint's total and the deltas above its watermark. One visit, of a lane at version 4:

    step    reads                             writes
    clean   checkpoint 4, the note, and       deletes deltas that segments up to the noted version
            deltas with their segments        list; then notes version 4, if all Regions have it
    fold    begin: checkpoint 4 and its       commit: checkpoint 5 and segment 5, in one
            segment; then the tail            transaction; the watermark rises
    settle  deltas at or below the            commit: checkpoint 6 and segment 6; the watermark
            watermark with their segments;    stays
            begin; their segments again

Why in this order. A fold deletes nothing, because a reader may hold the checkpoint from before it,
and another Region may not have received the new one. So a delta goes two visits later or more, and
only by the note of a version that every Region has had for longer than a read lasts. If the clean
came after the fold, no other Region would have the new version yet, and no note would be written.
A settle comes last, because the fold has moved the watermark: what came late is below it now.

Why begin before each commit. Only the version decides who commits: of two compactors that began at
version 4 one commits, and the other gives up and starts again later. Begin also waits until the
last commit's segment is there, because the items of a transaction become visible one by one; who
reads segments too early would count a stray twice.

Which file does what: visit.py has the order; clean.py, fold.py, settle.py and settle_named.py the
steps; commit.py begin and commit; listing.py finds which deltas segments list, and known.py what
a process remembers of that. lanes.py and inspection.py find out what there is to do. verify.py,
recount.py and gate_audit.py count anew; rebuild.py and gate_rebuild.py repair.

Each name is imported at its first use, so that a Lambda function loads only what it runs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compactor.compactor import Compactor
    from compactor.report import Report
    from compactor.verify import Verification

__all__ = ["Compactor", "Report", "Verification"]

_MODULES = {
    "Compactor": ".compactor",
    "Report": ".report",
    "Verification": ".verify",
}


if not TYPE_CHECKING:  # or a type checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_MODULES[name], __name__), name)
