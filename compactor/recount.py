"""A lane's segments summed anew: what rebuild writes and verify compares with.

Rules: segments are read strongly and page by page, so memory does not grow with the history; the distinct `hi`
partition the order of tokens and a token is listed once, else the lane is damaged.
"""

from __future__ import annotations

from dataclasses import dataclass

from ledger import items, tokens
from ledger.errors import LaneDamaged
from ledger.paging import PAGES_MAX
from ledger.requests import Page, Program, Query
from ledger.values import Lane


@dataclass(slots=True)
class Recount:
    """The sums over a lane's segments."""

    total: int = 0
    count: int = 0
    watermark: str | None = None
    version: int = 0


def recount(lane: Lane, *, versions_upto: int | None = None) -> Program[Recount]:
    """Sum the segments. Raises LaneDamaged when a token is listed twice or outside its segment's range."""
    sums = Recount()
    below: str | None = None  # the hi before the current one
    listed: set[bytes] = set()  # the tokens under the current hi
    after = items.SEGMENTS_FROM
    for _ in range(PAGES_MAX):
        page: Page = yield Query(items.fold_pk(lane), after, items.SEGMENTS_UPTO)
        for item in page.items:
            segment = items.segment_of(lane, item)
            if versions_upto is not None and segment.version > versions_upto:
                continue
            if segment.hi != sums.watermark:
                below, listed, sums.watermark = sums.watermark, set(), segment.hi
            found = [token for token, _ in segment]
            if not listed.isdisjoint(found) or (below and found and found[0] <= tokens.to_bytes(below)):
                raise LaneDamaged(f"{lane}: segment {item['sk']['S']!r} lists a delta twice, or one outside its range.")
            listed.update(found)
            sums.total += segment.total
            sums.count += len(segment)
            sums.version = max(sums.version, segment.version)
        if page.last is None:
            return sums
        after = page.last
    raise LaneDamaged(f"{lane}: more than {PAGES_MAX} pages of segments.")
