"""Where deltas are listed: the covering segments of deltas at or below the watermark.

Rules: cover(u) is the smallest hi at or above u, and every segment filed under it is read; a delta is listed when
one of them holds its token; memory is bounded by the deltas asked for and one page of segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ledger import items, tokens
from ledger.paging import PAGES_MAX
from ledger.requests import Page, Program, Query
from ledger.values import Delta, Lane


@dataclass(frozen=True, slots=True)
class Found:
    """Where a delta is listed: the `hi` of its cover (None: there is none), the segment's version and its change."""

    delta: Delta
    hi: str | None
    version: int | None = None
    change: int | None = None

    @property
    def listed(self) -> bool:
        return self.version is not None


def cover(lane: Lane, deltas: Sequence[Delta], *, consistent: bool) -> Program[list[Found]]:
    """What the cover of the first delta says of it and of the deltas after it that lie under the same hi.

    `deltas` are in the order of their tokens, and not empty.
    """
    pk = items.fold_pk(lane)
    page: Page = yield Query(
        pk, items.segments_before(deltas[0].token), items.SEGMENTS_UPTO, limit=1, consistent=consistent
    )
    if not page.items:
        return [Found(delta, None) for delta in deltas]
    hi = items.segment_of(lane, page.items[0]).hi
    under = {tokens.to_bytes(delta.token): delta for delta in deltas if delta.token <= hi}
    listed: dict[bytes, Found] = {}
    for _ in range(PAGES_MAX):
        for item in page.items:
            segment = items.segment_of(lane, item)
            for token, change in segment:
                if token in under:
                    listed[token] = Found(under[token], hi, segment.version, change)
        # After the one segment that told hi come the others under it, page by page.
        after = page.items[-1]["sk"]["S"] if page.items else None
        if page.last is None or after is None:
            break
        page = yield Query(pk, after, items.segments_of_hi(hi), consistent=consistent)
    return [listed.get(token, Found(delta, hi)) for token, delta in under.items()]


def look_up(lane: Lane, deltas: Sequence[Delta], *, consistent: bool) -> Program[list[Found]]:
    """Where each of `deltas` (in the order of their tokens) is listed, if it is."""
    found: list[Found] = []
    while len(found) < len(deltas):
        found += yield from cover(lane, deltas[len(found) :], consistent=consistent)
    return found
