"""Where deltas are listed: the covering segments of deltas at or below the watermark.

Rule 1: cover(u) is the smallest hi at or above u, and every segment filed under it is read; a delta is listed when
one of them holds its token.
Rule 2: memory is bounded by one page of deltas and one of segments.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ledger import items, tokens
from ledger.paging import Pages
from ledger.requests import Get, Item, Page, Program, Query
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
    after = items.segments_before(deltas[0].token)
    pages = Pages(Query(items.fold_pk(lane), after, items.SEGMENTS_UPTO, 1, consistent))
    page: Page = yield from pages.read()
    if not page.items:
        return [Found(delta, None) for delta in deltas]
    hi = items.segment_of(lane, page.items[0]).hi
    under = {tokens.to_bytes(delta.token): delta for delta in deltas if delta.token <= hi}
    listed: dict[bytes, Found] = {}
    while True:
        for item in page.items:
            segment = items.segment_of(lane, item)
            for token, change in segment:
                if token in under:
                    listed[token] = Found(under[token], hi, segment.version, change)
        if not pages.more:
            break
        # After the one segment that told hi come the others under it, page by page.
        pages.next = pages.next._replace(upto=items.segments_of_hi(hi), limit=None)
        page = yield from pages.read()
    return [listed.get(token, Found(delta, hi)) for token, delta in under.items()]


class Below:
    """The deltas of a lane at or below its watermark, page by page, each with where it is listed, if it is.

    `while below.more: found = yield from below.read()`, as with Pages.
    """

    def __init__(self, lane: Lane, watermark: str, *, consistent: bool = True) -> None:
        self._lane = lane
        self._pages = Pages(Query(items.delta_pk(lane), None, watermark, None, consistent))

    @property
    def more(self) -> bool:
        return self._pages.more

    def read(self) -> Program[list[Found]]:
        """The next of them, in the order of their tokens. Raises DamagedItem and the TableErrors."""
        page: Page = yield from self._pages.read()
        deltas = [items.delta_of(self._lane, item) for item in page.items]
        found: list[Found] = []
        while len(found) < len(deltas):
            found += yield from cover(self._lane, deltas[len(found) :], consistent=self._pages.next.consistent)
        return found


def strays(lane: Lane) -> Program[list[Delta]]:
    """The deltas at or below the watermark that no segment lists, in the order of their tokens.

    A history has them only after the next settle. Raises DamagedItem and the TableErrors.
    """
    item: Item | None = yield Get(items.checkpoint_key(lane))
    found: list[Delta] = []
    if item is not None:
        below = Below(lane, items.checkpoint_of(lane, item).watermark)
        while below.more:
            found += [each.delta for each in (yield from below.read()) if not each.listed]
    return found
