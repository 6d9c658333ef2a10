"""A lane's segments summed anew: what rebuild writes and verify compares with.

Rule 1: Segments are read strongly and page by page, so memory does not grow with the history.
Rule 2: The distinct `hi` partition the order of tokens and a token is listed once, else two segments overlap and the
lane is damaged.
"""

from collections.abc import Collection
from dataclasses import dataclass

from ledger import items, tokens
from ledger.errors import LaneDamaged
from ledger.lane.tail import Pages
from ledger.requests import Page, Program, Query
from ledger.values import Lane, Segment


@dataclass(slots=True)
class Recount:
    """The sums over a lane's segments."""

    total: int = 0
    count: int = 0
    watermark: str | None = None
    version: int = 0


class Overlap(LaneDamaged):
    """Two segments list a delta twice, or one lists what lies in the other's range: one of them is an orphan."""

    def __init__(self, first: Segment, second: Segment) -> None:
        one, other = (items.segment_key(s.lane, s.hi, s.version).sk for s in (first, second))
        super().__init__(
            f"{first.lane}: segment {other!r} overlaps {one!r}: it lists a delta twice, or one outside its range. "
            "Stop the compactor, then rebuild the lane."
        )
        self.segments = first, second


def recount(lane: Lane, *, versions_upto: int | None = None, without: Collection[Segment] = ()) -> Program[Recount]:
    """Sum the segments, but not those `without`.

    Raises Overlap, and LaneDamaged when two segments that overlap list a token with two changes.
    """
    sums = Recount()
    last: Segment | None = None  # the segment before the current one
    below: Segment | None = None  # one of the hi before the current one
    listed: dict[bytes, Segment] = {}  # the tokens under the current hi
    pages = Pages(Query(items.fold_pk(lane), items.SEGMENTS_FROM, items.SEGMENTS_UPTO))
    while pages.more:
        page: Page = yield from pages.read()
        for item in page.items:
            segment = items.segment_of(lane, item)
            if segment in without or (versions_upto is not None and segment.version > versions_upto):
                continue
            if segment.hi != sums.watermark:
                below, listed, sums.watermark = last, {}, segment.hi
            last = segment
            found = segment.entries.tokens
            if below is not None and found and found[0] <= tokens.to_bytes(below.hi):
                raise _overlap(below, segment)
            twice = next((token for token in found if token in listed), None)
            if twice is not None:
                raise _overlap(listed[twice], segment)
            listed.update(dict.fromkeys(found, segment))
            sums.total += segment.entries.total
            sums.count += len(segment)
            sums.version = max(sums.version, segment.version)
    return sums


def _overlap(first: Segment, second: Segment) -> LaneDamaged:
    changes = dict(first)
    for token, change in second:
        if changes.get(token, change) != change:
            return LaneDamaged(
                f"{first.lane}: two segments list the delta {tokens.from_bytes(token)}, once as {changes[token]} and "
                f"once as {change}. Nothing was written. Only a person can say which of them counts."
            )
    return Overlap(first, second)
