"""Finds where deltas are listed: the covering segments of entries at or below the watermark.

Rule 1: cover(u) is the smallest hi at or above u. A look-up reads every segment filed under it; an
entry is listed when one of them holds its token.
Rule 2: An entry at or below the watermark may stand in a pack that reaches above it. Where each
such entry matters, it reads items up to a pack's span above the watermark.
Rule 3: Memory holds one page of items and one of segments.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from ledger.core import items, tokens
from ledger.core.entries import ENTRY, TOKEN_BYTES, Entries
from ledger.core.ranges import VERSION_MAX
from ledger.core.requests import Get, Item, Page, Program, Query
from ledger.core.values import Delta, Lane, Segment
from ledger.lane.tail import LOWEST, Pages

HIGHEST_CHANGE = b"\xff" * (ENTRY.size - TOKEN_BYTES)
"""The bytes after a token in the highest entry that begins with it."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What segments say of several entries.

    same: those that are listed as they are. other: the listed entry, by the token, where its change
    is another. newer: those whose token only a segment of a later version has, where the caller
    wants none of these. hi: of the cover that all of them have, if it is one.
    """

    entries: Sequence[bytes]
    same: set[bytes] = field(default_factory=set)
    other: Mapping[bytes, bytes] = field(default_factory=dict)
    newer: set[bytes] = field(default_factory=set)
    hi: str | None = None

    @property
    def unlisted(self) -> list[bytes]:
        """The entries whose token no segment has, in order."""
        return [entry for entry in self.not_yet if entry not in self.newer]

    @property
    def not_yet(self) -> list[bytes]:
        """The entries whose token no segment up to the version has, in order."""
        if len(self.same) == len(self.entries):
            return []
        return [e for e in self.entries if e not in self.same and e[:TOKEN_BYTES] not in self.other]

    @property
    def as_listed(self) -> set[bytes]:
        """The listed entries of these tokens."""
        return {*self.same, *self.other.values()} if self.other else self.same


def changed_by(entry: bytes) -> int:
    change: int = ENTRY.unpack(entry)[1]
    return change


class CoverPages(Pages[Query]):
    """The segments under one hi, page by page, in the order of their versions."""

    def __init__(self, lane: Lane, first: Query) -> None:
        super().__init__(first)
        self._lane = lane

    def read(self) -> Program[list[Segment]]:
        """The next segments. Raises DamagedItem and what `Pages.read` raises."""
        page: Page = yield from super().read()
        segments = [items.segment_of(self._lane, item) for item in page.items]
        if segments:
            # After the one segment that shows hi come the others under it, page by page.
            upto = items.segments_of_hi(segments[0].hi)
            self.next = self.next._replace(upto=upto, limit=None)
        return segments


def cover_of(lane: Lane, entry: bytes, *, consistent: bool) -> CoverPages:
    """The segments of the cover of an entry; none where nothing covers it."""
    after = items.segments_before(tokens.from_bytes(entry[:TOKEN_BYTES]))
    first = Query(items.fold_pk(lane), after, items.SEGMENTS_UPTO, 1, consistent)
    return CoverPages(lane, first)


def cover_since(lane: Lane, hi: str, version: int) -> CoverPages:
    """The segments under `hi` of later versions than this one, by strong reads."""
    after = items.segment_key(lane, hi, version).sk
    first = Query(items.fold_pk(lane), after, items.segments_of_hi(hi), consistent=True)
    return CoverPages(lane, first)


class Sorting:
    """The entries under `hi`, of those given in the order of their tokens, sorted by what segments
    list, one after the other.
    """

    def __init__(self, entries: Sequence[bytes], hi: str) -> None:
        self._hi = hi
        self._under = entries[: bisect_right(entries, tokens.to_bytes(hi) + HIGHEST_CHANGE)]
        self._left = set(self._under)
        self._same, self._newer = set[bytes](), set[bytes]()
        self._other: dict[bytes, bytes] = {}

    def take(self, listed: Entries, *, is_newer: bool = False) -> None:
        """Sort by what a segment lists. is_newer: its version is later than the caller wants."""
        # Nearly all that a visit sees is listed as it is: a set finds that, Python looks at the
        # rest.
        same = self._left.intersection(listed.apart)
        self._left -= same
        other = listed_otherwise(self._left, listed)
        if is_newer:
            self._newer |= same
            self._newer |= {e for e in self._left if other and e[:TOKEN_BYTES] in other}
        else:
            self._same |= same
            self._other |= other

    @property
    def listing(self) -> Listing:
        return Listing(self._under, self._same, self._other, self._newer, self._hi)


def cover(
    lane: Lane, entries: Sequence[bytes], *, consistent: bool, versions_upto: int = VERSION_MAX
) -> Program[Listing]:
    """What the cover of the first entry says of it and of the entries after it under the same hi.

    `entries`, 24 bytes each, are in the order of their tokens, and at least one. Without a cover it
    says nothing of any. versions_upto: entries that only segments of a later version list are
    `newer`.
    """
    pages = cover_of(lane, entries[0], consistent=consistent)
    segments = yield from pages.read()
    if not segments:
        return Listing(entries)
    sorting = Sorting(entries, segments[0].hi)
    while True:
        for segment in segments:
            sorting.take(segment.entries, is_newer=segment.version > versions_upto)
        if not pages.more:
            return sorting.listing
        segments = yield from pages.read()


def listed_otherwise(entries: Set[bytes], listed: Entries) -> Mapping[bytes, bytes]:
    """The listed entries with the tokens of `entries`, by the token."""
    wanted = {entry[:TOKEN_BYTES] for entry in entries}
    if wanted.isdisjoint(listed.tokens):
        return {}
    return {
        token: entry
        for token, entry in zip(listed.tokens, listed.apart, strict=True)
        if token in wanted
    }


def covers(
    lane: Lane, entries: Sequence[bytes], *, consistent: bool, versions_upto: int = VERSION_MAX
) -> Program[Listing]:
    """What the covers of all these entries say of them, one after the other; arguments as for
    `cover`.
    """
    same, newer, other = set[bytes](), set[bytes](), dict[bytes, bytes]()
    done = 0
    while done < len(entries):
        found = yield from cover(
            lane, entries[done:], consistent=consistent, versions_upto=versions_upto
        )
        same |= found.same
        other |= found.other
        newer |= found.newer
        done += len(found.entries)
    return Listing(entries, same, other, newer)


class Below:
    """The entries of a lane at or below its watermark, page by page, with what segments say of
    them.

    `while below.more: found = yield from below.read()`, as with Pages. A token in several items of
    a page comes once, as the first of them has it; a token on two pages comes twice. since: it
    skips items with a sort key at or below this token. whole: it reads only items that are wholly
    below the watermark. page: the last items, with entries.
    """

    def __init__(
        self,
        lane: Lane,
        watermark: str,
        *,
        consistent: bool = True,
        since: str | None = None,
        whole: bool = False,
        versions_upto: int = VERSION_MAX,
    ) -> None:
        self.page: list[tuple[Item, Entries]] = []
        self._lane, self._upto, self._versions_upto = (
            lane,
            tokens.to_bytes(watermark),
            versions_upto,
        )
        end = items.tail_after(watermark) if whole else items.tail_upto(watermark)
        self._pages = Pages(Query(items.delta_pk(lane), since, end, None, consistent))

    @property
    def more(self) -> bool:
        return self._pages.more

    @property
    def upto(self) -> str | None:
        """The sort key up to which all was read; None at the end."""
        return self._pages.next.after

    def read(self) -> Program[Listing]:
        """The next entries, in the order of their tokens.

        Raises DamagedItem and the TableErrors.
        """
        page: Page = yield from self._pages.read()
        self.page = [(item, items.entries_of(self._lane, item)) for item in page.items]
        first: dict[bytes, bytes] = {}
        for _, held in reversed(self.page):
            held = held.between(LOWEST, self._upto)
            first.update(zip(held.tokens, held.apart, strict=True))
        consistent, upto = self._pages.next.consistent, self._versions_upto
        return (
            yield from covers(
                self._lane, sorted(first.values()), consistent=consistent, versions_upto=upto
            )
        )


def strays(lane: Lane) -> Program[list[Delta]]:
    """The deltas at or below the watermark that no segment lists, in the order of their tokens.

    A history has them only after the next settle. Raises DamagedItem and the TableErrors.
    """
    item: Item | None = yield Get(items.checkpoint_key(lane))
    found: dict[str, Delta] = {}
    if item is not None:
        below = Below(lane, items.checkpoint_of(lane, item).watermark)
        while below.more:
            for entry in (yield from below.read()).unlisted:
                token = tokens.from_bytes(entry[:TOKEN_BYTES])
                found.setdefault(token, Delta(lane, token, changed_by(entry)))
    return [found[token] for token in sorted(found)]
