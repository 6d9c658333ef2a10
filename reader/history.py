"""The program `history`: every change of a lane, from its segments and its tail.

Rule 1: The checkpoint first (version v), then the segments of versions up to v, then the tail above its watermark.
Rule 2: The entries must be as many as the checkpoint counts, else a replica does not hold them all yet.
Rule 3: The read's time is bounded as in `read` (restart.py).
"""

import heapq
from collections.abc import Iterator, Sequence
from itertools import chain, groupby

from ledger import items, tokens
from ledger.entries import ENTRY
from ledger.lane.tail import Tail, every_item
from ledger.requests import Get, Instant, Program
from ledger.values import Delta, Lane, Segment
from reader.balance import Entry
from reader.restart import restart

Found = tuple[list[Segment], list[bytes]]


def history(lane: Lane, *, consistent: bool, read_time_max_ms: int) -> Program[Found]:
    """The segments (in the order of hi) and the tail of one lane.

    Raises DamagedItem, NotYetReplicated, ReadTooSlow and the TableErrors.
    """

    def attempt(_: Instant) -> Program[tuple[Found | None, bool]]:
        item = yield Get(items.checkpoint_key(lane), consistent)
        checkpoint = items.checkpoint_of(lane, item) if item is not None else None
        segments: list[Segment] = []
        if checkpoint is not None:
            found = yield from every_item(
                items.fold_pk(lane), items.SEGMENTS_FROM, items.SEGMENTS_UPTO, consistent=consistent
            )
            segments = [s for s in (items.segment_of(lane, i) for i in found) if s.version <= checkpoint.version]
        watermark = checkpoint.watermark if checkpoint else None
        tail = yield from Tail(lane, watermark, None, consistent=consistent).take()
        is_whole = sum(map(len, segments)) == (checkpoint.count if checkpoint else 0)
        return (segments, tail) if is_whole else None, True

    _, found = yield from restart(lane, attempt, read_time_max_ms)
    return found


def entries(lane: Lane, segments: Sequence[Segment], tail: Sequence[bytes]) -> Iterator[Entry]:
    """The entries of a lane in the order of their tokens. Only the segments of one hi interleave."""
    ranges = (heapq.merge(*group) for _, group in groupby(segments, key=lambda segment: segment.hi))
    pending = (ENTRY.unpack(entry) for entry in tail)
    for token, change in chain(chain.from_iterable(ranges), pending):
        delta = Delta(lane, tokens.from_bytes(token), change)
        yield Entry(delta.token, delta.at, change, lane.region)
