"""The tail: the entries of a lane's deltas and packs above its watermark, each token once.

Rule 1: A token above the watermark stands only in items whose sort key is above it too, whatever else they hold; so
every item that holds it is seen, and the first of them is chosen (entries.py).
Rule 2: Packs overlap, so the order of items is not the order of tokens. An entry is *complete* when no later item can
hold a lower one: items sort by their highest token and span PACK_SPAN_MS at most.
"""

from bisect import bisect_left

from ledger import items, tokens
from ledger.entries import Entries, Unique, time_ms
from ledger.paging import Pages
from ledger.requests import Page, Program, Query
from ledger.values import PACK_SPAN_MS, Lane

LIMIT_MAX = 1_024
"""Most items of one Query that asks for few at first."""

LOWEST, HIGHEST = b"", b"\xff" * tokens.BYTES


def bound(token: str | None, without: bytes) -> bytes:
    return without if token is None else tokens.to_bytes(token)


class TailSum:
    """The sum of a tail, page by page: `next` asks for a page, `take` adds it, `more` says whether there is another.

    oldest_ms: the time of its lowest token, None for an empty tail. again: entries whose token was counted before.
    """

    def __init__(self, lane: Lane, watermark: str | None, *, consistent: bool) -> None:
        self.total = self.count = 0
        self.oldest_ms: int | None = None
        self.lane, self._above = lane, bound(watermark, LOWEST)
        self._pages = Pages(Query(items.delta_pk(lane), items.tail_after(watermark), consistent=consistent))
        self._unique = Unique(PACK_SPAN_MS)

    @property
    def next(self) -> Query:
        return self._pages.next

    @property
    def more(self) -> bool:
        return self._pages.more

    @property
    def again(self) -> list[bytes]:
        return self._unique.again

    def read(self) -> Program[list[Entries]]:
        """Ask for the next page and take it."""
        page: Page = yield self.next
        return self.take(page)

    def take(self, page: Page) -> list[Entries]:
        """Add the answer to `next`; what was new in it. Raises DamagedItem, and Unavailable as Pages does."""
        self._pages.turn(page)
        new = [self._unique.new(items.entries_of(self.lane, i).between(self._above, HIGHEST)) for i in page.items]
        found = [entries for entries in new if entries.tokens]
        self.total += sum(entries.total for entries in found)
        self.count += sum(map(len, found))
        times = (time_ms(entries.tokens[0]) for entries in found)
        self.oldest_ms = min(times if self.oldest_ms is None else (self.oldest_ms, *times), default=None)
        return found


class Tail:
    """The entries of a lane above `above`, at or below `upto`, in the order of their tokens.

    limit: items that the first Query asks for, and each further one for twice as many; None: as many as fit a page.
    """

    def __init__(
        self, lane: Lane, above: str | None, upto: str | None, *, consistent: bool, limit: int | None = None
    ) -> None:
        self.unique = Unique(PACK_SPAN_MS)
        self._lane = lane
        self._above, self._upto = bound(above, LOWEST), bound(upto, HIGHEST)
        end = None if upto is None else items.tail_upto(upto)
        self._pages = Pages(Query(items.delta_pk(lane), items.tail_after(above), end, limit, consistent))
        self._found: list[bytes] = []
        self._complete = LOWEST  # a token below it is complete

    def take(self, most: int | None = None) -> Program[list[bytes]]:
        """The lowest `most` entries that were not taken yet, 24 bytes each. Raises DamagedItem and the TableErrors."""
        while self._pages.more and (most is None or self._ready < most):
            yield from self._read()
        ready = self._found[: self._ready if most is None else min(self._ready, most)]
        del self._found[: len(ready)]
        return ready

    @property
    def _ready(self) -> int:
        return bisect_left(self._found, self._complete) if self._pages.more else len(self._found)

    def _read(self) -> Program[None]:
        page: Page = yield from self._pages.read()
        for item in page.items:
            entries = items.entries_of(self._lane, item)
            self._found += self.unique.new(entries.between(self._above, self._upto)).apart
            self._complete = tokens.first_of(time_ms(entries.tokens[-1]) - PACK_SPAN_MS)
        self._found.sort()
        if (limit := self._pages.next.limit) is not None:
            self._pages.next = self._pages.next._replace(limit=min(2 * limit, LIMIT_MAX))
