"""The program `page`: the first entries of a lane above a token, without reading the rest of its history.

Rules: the checkpoint first (version v), then the segments of versions up to v, then the tail above its watermark; the
segments of one hi are read together, because their entries interleave; the segment of version v must be there, else
its transaction is still landing and all is read again; what is read for one page is bounded.
"""

from __future__ import annotations

from heapq import nsmallest

from ledger import items, tokens
from ledger.errors import HistoryTooLarge, NotYetReplicated, ReadTooSlow
from ledger.paging import every_item
from ledger.requests import Get, Instant, Now, Page, Program, Query, in_time
from ledger.values import Checkpoint, Delta, Lane
from reader.balance import Entry

STARTS_MAX = 5
SEGMENTS_AT_ONCE = 4
QUERIES_MAX = 64
"""Most queries of segments for one page: some 250 segments of one hi, a million strays."""

Found = list[tuple[str, int]]


def page(
    lane: Lane, above: str | None, upto: str | None, most: int, *, consistent: bool, read_time_max_ms: int
) -> Program[list[Entry]]:
    """The first `most` entries of a lane with tokens above `above`, at or below `upto`, in their order.

    Raises DamagedItem, HistoryTooLarge, NotYetReplicated, ReadTooSlow and the TableErrors.
    """
    for _ in range(STARTS_MAX):
        began: Instant = yield Now()
        item = yield Get(items.checkpoint_key(lane), consistent)
        checkpoint = items.checkpoint_of(lane, item) if item is not None else None
        found: Found | None = []
        if checkpoint is not None:
            found = yield from _folded(lane, checkpoint, above, upto, most, consistent)
        if found is not None and len(found) < most:
            found += yield from _tail(lane, checkpoint, above, upto, most - len(found), consistent)
        ended: Instant = yield Now()
        late = not in_time(began, ended, read_time_max_ms)
        if found is not None and not late:
            return [Entry(token, Delta(lane, token, change).at, change, lane.region) for token, change in found]
    if late:
        raise ReadTooSlow(f"{lane}: {STARTS_MAX} reads of a page of history took longer than {read_time_max_ms} ms.")
    raise NotYetReplicated(f"{lane}: this Region does not hold every segment of the checkpoint. Ask again later.")


def _tail(
    lane: Lane, checkpoint: Checkpoint | None, above: str | None, upto: str | None, most: int, consistent: bool
) -> Program[Found]:
    start = max(filter(None, (above, checkpoint.watermark if checkpoint else None)), default=None)
    tail = yield from every_item(items.delta_pk(lane), start, upto, most=most, consistent=consistent)
    return [(delta.token, delta.change) for delta in (items.delta_of(lane, item) for item in tail)]


def _folded(
    lane: Lane, checkpoint: Checkpoint, above: str | None, upto: str | None, most: int, consistent: bool
) -> Program[Found | None]:
    """The entries from segments; None when the segments are seen not to be those of the checkpoint."""
    found: Found = []
    hi, count, newest, whole = "", 0, False, above is None
    after: str | None = items.SEGMENTS_FROM if above is None else items.segments_of_hi(above)
    for _ in range(QUERIES_MAX):
        answer: Page = yield Query(items.fold_pk(lane), after, items.SEGMENTS_UPTO, SEGMENTS_AT_ONCE, consistent)
        ended = answer.last is None
        for segment in (items.segment_of(lane, item) for item in answer.items):
            if segment.hi != hi and (len(found) >= most or (upto is not None and hi >= upto)):
                ended, whole = True, False
                break
            hi = segment.hi
            if segment.version <= checkpoint.version:
                newest = newest or segment.version == checkpoint.version
                count += len(segment)
                entries = ((tokens.from_bytes(token), change) for token, change in segment)
                wanted = (e for e in entries if (above is None or e[0] > above) and (upto is None or e[0] <= upto))
                found = nsmallest(most, (*found, *wanted))
        if ended:
            break
        after = answer.last
    else:
        raise HistoryTooLarge(
            f"{lane}: more than {QUERIES_MAX * SEGMENTS_AT_ONCE} segments lie in one range of time. Nothing was "
            "written. Read the whole history with Reader.history."
        )
    if whole:
        return found if count == checkpoint.count else None
    newest = newest or (yield Get(items.segment_key(lane, checkpoint.last, checkpoint.version), consistent)) is not None
    return found if newest else None
