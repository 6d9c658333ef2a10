"""Where deltas are listed: the covering segments of entries at or below the watermark.

Rule 1: cover(u) is the smallest hi at or above u, and every segment filed under it is read; an entry is listed when
one of them holds its token.
Rule 2: An entry at or below the watermark may stand in a pack that reaches above it, so items are read a span further
than the watermark where each such entry matters.
Rule 3: memory is bounded by one page of items and one of segments.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ledger import items, tokens
from ledger.entries import ENTRY, TOKEN_BYTES, Entries
from ledger.paging import Pages
from ledger.requests import Get, Item, Page, Program, Query
from ledger.tail import LOWEST
from ledger.values import Delta, Lane


@dataclass(frozen=True, slots=True)
class Found:
    """Where an entry is listed: the `hi` of its cover (None: there is none), the segment's version, and as what."""

    entry: bytes
    hi: str | None
    version: int | None = None
    listed_as: bytes | None = None

    @property
    def listed(self) -> bool:
        return self.version is not None

    @property
    def token(self) -> str:
        return tokens.from_bytes(self.entry[:TOKEN_BYTES])

    @property
    def change(self) -> int:
        return changed_by(self.entry)


def changed_by(entry: bytes) -> int:
    change: int = ENTRY.unpack(entry)[1]
    return change


def cover(lane: Lane, entries: Sequence[bytes], *, consistent: bool) -> Program[list[Found]]:
    """What the cover of the first entry says of it and of the entries after it that lie under the same hi.

    `entries`, 24 bytes each, are in the order of their tokens, and not empty.
    """
    after = items.segments_before(tokens.from_bytes(entries[0][:TOKEN_BYTES]))
    pages = Pages(Query(items.fold_pk(lane), after, items.SEGMENTS_UPTO, 1, consistent))
    page: Page = yield from pages.read()
    if not page.items:
        return [Found(entry, None) for entry in entries]
    hi = items.segment_of(lane, page.items[0]).hi
    end = tokens.to_bytes(hi)
    under = {entry[:TOKEN_BYTES]: entry for entry in entries if entry[:TOKEN_BYTES] <= end}
    listed: dict[bytes, Found] = {}
    while True:
        for item in page.items:
            segment = items.segment_of(lane, item)
            if not under.keys().isdisjoint(segment.entries.tokens):
                for token, entry in zip(segment.entries.tokens, segment.entries.apart, strict=True):
                    if token in under:
                        listed[token] = Found(under[token], hi, segment.version, entry)
        if not pages.more:
            break
        # After the one segment that told hi come the others under it, page by page.
        pages.next = pages.next._replace(upto=items.segments_of_hi(hi), limit=None)
        page = yield from pages.read()
    return [listed.get(token, Found(entry, hi)) for token, entry in under.items()]


class Below:
    """The entries of a lane at or below its watermark, page by page, each with where it is listed, if it is.

    `while below.more: found = yield from below.read()`, as with Pages. A token that stands in several items of a page
    comes once, as the first of them has it; one on two pages comes twice. whole: only items that lie below the
    watermark as wholes are looked at. page: the last page's items, each with what it holds.
    """

    def __init__(self, lane: Lane, watermark: str, *, consistent: bool = True, whole: bool = False) -> None:
        self.page: list[tuple[Item, Entries]] = []
        self._lane, self._upto = lane, tokens.to_bytes(watermark)
        end = items.tail_after(watermark) if whole else items.tail_upto(watermark)
        self._pages = Pages(Query(items.delta_pk(lane), None, end, None, consistent))

    @property
    def more(self) -> bool:
        return self._pages.more

    def read(self) -> Program[list[Found]]:
        """The next of them, in the order of their tokens. Raises DamagedItem and the TableErrors."""
        page: Page = yield from self._pages.read()
        self.page = [(item, items.entries_of(self._lane, item)) for item in page.items]
        first: dict[bytes, bytes] = {}
        for _, held in self.page:
            for entry in held.between(LOWEST, self._upto).apart:
                first.setdefault(entry[:TOKEN_BYTES], entry)
        entries = sorted(first.values())
        found: list[Found] = []
        while len(found) < len(entries):
            found += yield from cover(self._lane, entries[len(found) :], consistent=self._pages.next.consistent)
        return found


def strays(lane: Lane) -> Program[list[Delta]]:
    """The deltas at or below the watermark that no segment lists, in the order of their tokens.

    A history has them only after the next settle. Raises DamagedItem and the TableErrors.
    """
    item: Item | None = yield Get(items.checkpoint_key(lane))
    found: dict[str, Delta] = {}
    if item is not None:
        below = Below(lane, items.checkpoint_of(lane, item).watermark)
        while below.more:
            for each in (yield from below.read()):
                if not each.listed:
                    found.setdefault(each.token, Delta(lane, each.token, each.change))
    return [found[token] for token in sorted(found)]
