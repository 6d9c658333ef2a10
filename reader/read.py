"""The program `read`: the sum of some lanes, true at every moment.

Rule 1: for every lane the checkpoint is read before its tail, never after, so that a delta folded in between is counted
by the tail and not missed.
Rule 2: the tail is everything strictly above the watermark, all pages.
Rule 3: a read that took too long starts again from the checkpoint (restart.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ledger import items
from ledger.errors import LedgerError
from ledger.paging import Pages
from ledger.requests import GetMany, Instant, Page, Program, Query, Together
from ledger.values import Lane
from reader.restart import restart


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

    def attempt() -> Program[tuple[list[LaneSum], bool]]:
        sums = yield from _checkpoints(lanes, consistent)
        yield from _tails(sums, consistent)
        return sums, True

    return restart(lanes[0].counter, attempt, read_time_max_ms)


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
    tails = [(s, Pages(Query(items.delta_pk(s.lane), s.watermark, consistent=consistent))) for s in sums]
    while tails:
        answers: tuple[Page | LedgerError, ...] = yield Together(tuple(pages.next for _, pages in tails))
        for (lane_sum, pages), page in zip(tails, answers, strict=True):
            if isinstance(page, LedgerError):
                raise page
            pages.turn(page)
            for item in page.items:
                lane_sum.value += items.delta_of(lane_sum.lane, item).change
            lane_sum.count += len(page.items)
            lane_sum.pending += len(page.items)
        tails = [(lane_sum, pages) for lane_sum, pages in tails if pages.more]
