"""The program `read`: the sum of some lanes, true at every moment.

Rules: for every lane the checkpoint is read before its tail, never after, so that a delta folded in between is counted
by the tail and not missed; the tail is everything strictly above the watermark, all pages; a read that took longer than
`read_time_max_ms` by either clock starts again from the checkpoint, because by then a folded delta may be cleaned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ledger import items
from ledger.errors import LedgerError, ReadTooSlow
from ledger.requests import GetMany, Instant, Now, Page, Program, Query, Together, in_time
from ledger.values import Lane

STARTS_MAX = 5
PAGES_MAX = 1_000_000


@dataclass(slots=True)
class LaneSum:
    """What a lane holds: the checkpoint's sum, then the tail's on top."""

    lane: Lane
    watermark: str | None
    value: int
    count: int
    pending: int = 0


def read(lanes: Sequence[Lane], *, consistent: bool, read_time_max_ms: int) -> Program[tuple[Instant, list[LaneSum]]]:
    """The sums of `lanes` and the instant at which the read began.

    Raises DamagedItem, ReadTooSlow, Unavailable and the other TableErrors.
    """
    for _ in range(STARTS_MAX):
        began: Instant = yield Now()
        sums = yield from _checkpoints(lanes, consistent)
        yield from _tails(sums, consistent)
        ended: Instant = yield Now()
        if in_time(began, ended, read_time_max_ms):
            return began, sums
    raise ReadTooSlow(
        f"{lanes[0].counter}: {STARTS_MAX} reads in a row took longer than {read_time_max_ms} ms. "
        "Nothing was written. Let the compactor run, then read again."
    )


def _checkpoints(lanes: Sequence[Lane], consistent: bool) -> Program[list[LaneSum]]:
    found = yield GetMany(tuple(items.checkpoint_key(lane) for lane in lanes), consistent)
    sums = []
    for lane, item in zip(lanes, found, strict=True):
        if item is None:
            sums.append(LaneSum(lane, None, 0, 0))
        else:
            checkpoint = items.checkpoint_of(lane, item)
            sums.append(LaneSum(lane, checkpoint.watermark, checkpoint.total, checkpoint.count))
    return sums


def _tails(sums: Sequence[LaneSum], consistent: bool) -> Program[None]:
    """Add every delta above each watermark; the lanes' pages are asked for together."""
    todo: Sequence[tuple[LaneSum, str | None]] = [(lane_sum, lane_sum.watermark) for lane_sum in sums]
    for _ in range(PAGES_MAX):
        if not todo:
            return
        queries = (Query(items.delta_pk(s.lane), after=after, consistent=consistent) for s, after in todo)
        answers: tuple[Page | LedgerError, ...] = yield Together(tuple(queries))
        more = []
        for (lane_sum, _), page in zip(todo, answers, strict=True):
            if isinstance(page, LedgerError):
                raise page
            for item in page.items:
                lane_sum.value += items.delta_of(lane_sum.lane, item).change
            lane_sum.count += len(page.items)
            lane_sum.pending += len(page.items)
            if page.last is not None:
                more.append((lane_sum, page.last))
        todo = more
    raise ReadTooSlow(f"{sums[0].lane.counter}: a tail has more than {PAGES_MAX} pages. Nothing was written.")
