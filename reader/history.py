"""The program `history`: every change of a lane, from its segments and its tail.

Rule 1: The checkpoint first (version v), then the segments of versions up to v, then the tail above its watermark.
Rule 2: The entries must be as many as the checkpoint counts, else a replica does not hold them all yet.
Rule 3: The read's time is bounded as in `read` (restart.py).
"""

import heapq
from collections.abc import Iterator, Sequence
from itertools import chain, groupby

from ledger import items, tokens
from ledger.paging import every_item
from ledger.requests import Get, Program
from ledger.values import Delta, Lane, Segment
from reader.balance import Entry
from reader.restart import restart

Found = tuple[list[Segment], list[Delta]]


def history(lane: Lane, *, consistent: bool, read_time_max_ms: int) -> Program[Found]:
    """The segments (in the order of hi) and the tail of one lane.

    Raises DamagedItem, NotYetReplicated, ReadTooSlow and the TableErrors.
    """

    def attempt() -> Program[tuple[Found | None, bool]]:
        item = yield Get(items.checkpoint_key(lane), consistent)
        checkpoint = items.checkpoint_of(lane, item) if item is not None else None
        segments: list[Segment] = []
        if checkpoint is not None:
            found = yield from every_item(
                items.fold_pk(lane), items.SEGMENTS_FROM, items.SEGMENTS_UPTO, consistent=consistent
            )
            segments = [s for s in (items.segment_of(lane, i) for i in found) if s.version <= checkpoint.version]
        tail = yield from every_item(
            items.delta_pk(lane), checkpoint.watermark if checkpoint else None, None, consistent=consistent
        )
        if sum(map(len, segments)) != (checkpoint.count if checkpoint else 0):
            return None, True
        return (segments, [items.delta_of(lane, i) for i in tail]), True

    _, found = yield from restart(lane, attempt, read_time_max_ms)
    return found


def entries(lane: Lane, segments: Sequence[Segment], tail: Sequence[Delta]) -> Iterator[Entry]:
    """The entries of a lane in the order of their tokens. Only the segments of one hi interleave."""
    ranges = (heapq.merge(*group) for _, group in groupby(segments, key=lambda segment: segment.hi))
    folded = ((tokens.from_bytes(token), change) for token, change in chain.from_iterable(ranges))
    for token, change in chain(folded, ((delta.token, delta.change) for delta in tail)):
        delta = Delta(lane, token, change)
        yield Entry(token, delta.at, change, lane.region)
