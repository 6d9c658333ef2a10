"""The tail: the entries of a lane's deltas and packs above its watermark, each token once; and how
pages are read.

Rule 1: a token above the watermark stands only in items whose sort key is above it too, whatever
else they hold; so a read sees every item that holds it, and chooses the first (entries.py).
Rule 2: packs overlap, so the order of items is not the order of tokens. An entry is *complete* when
no later item can hold a lower one: items sort by their highest token and span PACK_SPAN_MS at most.
"""

from bisect import bisect_left
from typing import Any, Generic, TypeVar

from ledger.core import items, tokens
from ledger.core.entries import Entries, Unique, time_ms
from ledger.core.errors import Unavailable
from ledger.core.requests import At, Item, Now, Page, Pause, Program, Query, Request, Result, Scan
from ledger.core.running import through
from ledger.core.values import PACK_SPAN_MS, Lane

PAGES_MAX = 1_000_000  # stops a loop that would never end; a page holds 1 MB

Paged = TypeVar("Paged", Query, Scan)


class Pages(Generic[Paged]):
    """The one way to read what may not fit into one answer, so that no loop forgets to go on after
    a page: `while pages.more: page = yield from pages.read()`.

    next: the request for the next page. more: whether there is one. After PAGES_MAX pages there is
    an error, because a loop that stopped silently would return a part.
    """

    def __init__(self, first: Paged) -> None:
        self.next: Paged = first
        self.more = True
        self._read = 0

    def read(self) -> Program[Any]:
        """The next page.

        Raises Unavailable when more than PAGES_MAX follow each other, and the TableErrors.
        """
        page = yield self.next
        return self.take(page)

    def take(self, page: Any) -> Any:
        """Go on after `page`, the answer to `next`, and return it.

        Raises Unavailable as `read` does.
        """
        self._read += 1
        self.more = page.last is not None
        if self.more and self._read == PAGES_MAX:
            what = getattr(self.next, "pk", "The table")
            raise Unavailable(
                f"{what} has more than {PAGES_MAX:,} pages, so this read gave up. Nothing was "
                "written."
            )
        self.next = self.next._replace(after=page.last)
        return page


def every_item(
    pk: str, after: str | None, upto: str | None, *, most: int | None = None, consistent: bool
) -> Program[list[Item]]:
    """Every item (or the first `most`) with a sort key above `after`, at or below `upto`, in
    order.
    """
    pages = Pages(Query(pk, after, upto, most, consistent))
    found: list[Item] = []
    while pages.more and len(found) != most:
        page: Page = yield from pages.read()
        found += page.items
        if most is not None:
            pages.next = pages.next._replace(limit=most - len(found))
    return found


def at(region: str, program: Program[Result]) -> Program[Result]:
    """The program, with each request to its table at that Region, except those that name a
    Region themselves.
    """

    def step(request: Request) -> Program[Any]:
        return (yield request if isinstance(request, Now | Pause | At) else At(region, request))

    return through(program, step)


LIMIT_MAX = 1_024  # items of one Query, of those that begin with few

LOWEST, HIGHEST = b"", b"\xff" * tokens.BYTES


def bound(token: str | None, without: bytes) -> bytes:
    return without if token is None else tokens.to_bytes(token)


class TailSum(Pages[Query]):
    """The sum of a tail, page by page. oldest_ms: the time of its lowest token. again: entries
    whose token was counted before."""

    def __init__(self, lane: Lane, watermark: str | None, *, consistent: bool) -> None:
        super().__init__(
            Query(items.delta_pk(lane), items.tail_after(watermark), consistent=consistent)
        )
        self.total = self.count = 0
        self.oldest_ms: int | None = None
        self.lane, self._above = lane, bound(watermark, LOWEST)
        self._unique = Unique(PACK_SPAN_MS)
        self.again = self._unique.again

    def take(self, page: Page) -> list[Entries]:
        """Add the answer to `next`; what was new in it.

        Raises DamagedItem, and Unavailable as Pages does.
        """
        super().take(page)
        new = [
            self._unique.new(items.entries_of(self.lane, i).between(self._above, HIGHEST))
            for i in page.items
        ]
        found = [entries for entries in new if entries.tokens]
        self.total += sum(entries.total for entries in found)
        self.count += sum(map(len, found))
        times = (time_ms(entries.tokens[0]) for entries in found)
        self.oldest_ms = min(
            times if self.oldest_ms is None else (self.oldest_ms, *times), default=None
        )
        return found


class Tail:
    """The entries of a lane above `above`, at or below `upto`, in the order of their tokens.

    limit: how many items the first Query reads; each further one reads twice as many. None: as many
    as fit a page.
    """

    def __init__(
        self,
        lane: Lane,
        above: str | None,
        upto: str | None,
        *,
        consistent: bool,
        limit: int | None = None,
    ) -> None:
        self.unique = Unique(PACK_SPAN_MS)
        self._lane = lane
        self._above, self._upto = bound(above, LOWEST), bound(upto, HIGHEST)
        end = None if upto is None else items.tail_upto(upto)
        self._pages = Pages(
            Query(items.delta_pk(lane), items.tail_after(above), end, limit, consistent)
        )
        self._found: list[bytes] = []
        self._complete = LOWEST  # a token below it is complete

    def take(self, most: int | None = None) -> Program[list[bytes]]:
        """The lowest `most` entries that nobody took yet, 24 bytes each.

        Raises DamagedItem and the TableErrors.
        """
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
