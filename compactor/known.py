"""`KnownCovers`: what a process remembers of covers between its settles. It saves reads: under a
cover that it knows, a settle reads only the segments that came since.

Rule 1: It remembers segments that a checkpoint counts, from strong reads after begin. Segments
never change and no version is left out, so a segment that is new to it has a later version.
Rule 2: A rebuild may undo a segment, five minutes after the last commit. So a cover is remembered
for less, by both clocks, from the last strong read of it.
Rule 3: Who is interrupted, at any line, leaves it whole, and a forked child begins with its own.
"""

import threading
from collections.abc import Sequence
from typing import NamedTuple

from cachetools import LRUCache

from compactor.listing import Listing, Sorting, cover_of, cover_since
from ledger.core import tokens
from ledger.core.clocks import PerProcess
from ledger.core.entries import TOKEN_BYTES, Entries
from ledger.core.requests import Instant, Program, in_time
from ledger.core.values import Lane, Segment

REMEMBERED_MS = 240_000
"""Less than an operator waits before a rebuild, which is LANDING_MAX_MS."""

BYTES_MAX, COVER_BYTES = 16_000_000, 1_000
"""Of all covers together, and what one takes beside its entries."""


class Known(NamedTuple):
    """The cover of every token from `first` to `hi`: what its segments up to `version` list, in any
    order. at: a moment before the last read.
    """

    first: str
    hi: str
    version: int
    listed: Entries
    at: Instant


def _bytes_of(known: Known) -> int:
    # an entry's token stands in them twice: in the data, and as an object of its own
    return COVER_BYTES + len(known.listed.data) + 64 * len(known.listed)


class _Shelf:
    """Of one process: the last cover of each lane."""

    def __init__(self) -> None:
        # `with` it is C, and no signal comes between taking it and giving it back
        self._lock = threading.RLock()
        self._kept: LRUCache[Lane, Known] | None = None

    def of(self, lane: Lane) -> Known | None:
        with self._lock:
            kept, self._kept = self._kept, None
            known = None if kept is None else kept.get(lane)
            self._kept = kept
        return known

    def keep(self, lane: Lane, known: Known) -> None:
        with self._lock:
            kept: LRUCache[Lane, Known] = self._kept or LRUCache(BYTES_MAX, _bytes_of)
            # who is interrupted before it is back leaves an empty cache, never a broken one
            self._kept = None
            if _bytes_of(known) <= BYTES_MAX:
                kept[lane] = known
            self._kept = kept


class KnownCovers:
    """One cover of each lane, of the lanes that were settled last. It is thread-safe."""

    def __init__(self) -> None:
        self._own = PerProcess(_Shelf)

    def cover(
        self, lane: Lane, entries: Sequence[bytes], version: int, now: Instant
    ) -> Program[Listing]:
        """`cover` by strong reads. version: of the checkpoint that `begin` has seen."""
        first = tokens.from_bytes(entries[0][:TOKEN_BYTES])
        known = self._own.value.of(lane)
        if known is not None and not (
            known.first <= first <= known.hi
            and known.version <= version
            and in_time(known.at, now, REMEMBERED_MS)
        ):
            known = None
        pages = (
            cover_of(lane, entries[0], consistent=True)
            if known is None
            else cover_since(lane, known.hi, known.version)
        )
        segments: list[Segment] = []
        while pages.more:
            segments += yield from pages.read()
        if known is None:
            if not segments:
                return Listing(entries)
            known = Known(first, segments[0].hi, 0, Entries(b"", ()), now)
        # the next call reads again what no checkpoint counted yet
        counted = [segment.entries for segment in segments if segment.version <= version]
        listed = _joined([known.listed, *counted])
        self._own.value.keep(lane, known._replace(version=version, listed=listed, at=now))
        sorting = Sorting(entries, known.hi)
        sorting.take(known.listed)
        for segment in segments:
            sorting.take(segment.entries)
        return sorting.listing


def _joined(several: Sequence[Entries]) -> Entries:
    """The entries of several items, in the order of the items."""
    return Entries(
        b"".join(entries.data for entries in several),
        tuple(token for entries in several for token in entries.tokens),
    )
