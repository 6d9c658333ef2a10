"""The programs `history` and `page` read every change of a lane, or the first above a token, from
segments and tail.

Rule 1: Read the checkpoint first (version v), then the segments of versions up to v, then the tail
above its watermark.
Rule 2: The entries must be as many as the checkpoint counts, else a replica does not hold them all
yet.
Rule 3: The read's time is bounded as in `read`; for a page only the tail's, because segments never
change.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, islice

from ledger.core import items, tokens
from ledger.core.entries import ENTRY
from ledger.core.requests import Get, Instant, Page, Program, Query
from ledger.core.values import Checkpoint, Lane, Segment
from ledger.lane.tail import Pages, Tail, every_item
from reader.balance import Change, Entry, entries_of
from reader.read import restart

SEGMENTS_AT_ONCE = 4
"""Segments that the second Query reads; each further one reads twice as many, because they are
small. The first reads one: it holds up to `fold_max` changes, so mostly more than a page.
"""

SEGMENTS_MAX = 1_024
"""The most segments of one Query, whose page holds 1 MB at most."""

TOKENS_UPTO = b"\xff" * 16

Found = list[tuple[bytes, int]]
Whole = tuple[list[Segment], list[bytes]]


def history(lane: Lane, *, consistent: bool, read_time_max_ms: int) -> Program[Whole]:
    """The segments (in the order of hi) and the tail of one lane.

    Raises DamagedItem, NotYetReplicated, ReadTooSlow and the TableErrors.
    """

    def attempt(_: Instant) -> Program[tuple[Whole | None, bool]]:
        item = yield Get(items.checkpoint_key(lane), consistent)
        checkpoint = items.checkpoint_of(lane, item) if item is not None else None
        segments: list[Segment] = []
        if checkpoint is not None:
            found = yield from every_item(
                items.fold_pk(lane), items.SEGMENTS_FROM, items.SEGMENTS_UPTO, consistent=consistent
            )
            segments = [
                s
                for s in (items.segment_of(lane, i) for i in found)
                if s.version <= checkpoint.version
            ]
        watermark = checkpoint.watermark if checkpoint else None
        tail = yield from Tail(lane, watermark, None, consistent=consistent).take()
        is_whole = sum(map(len, segments)) == (checkpoint.count if checkpoint else 0)
        return (segments, tail) if is_whole else None, True

    _, found = yield from restart(lane, attempt, read_time_max_ms)
    return found


def changes(lane: Lane, segments: Sequence[Segment], tail: Sequence[bytes]) -> Iterator[Change]:
    """The changes of a lane in the order of their tokens."""
    # the entries of the segments of one hi interleave, however many these are
    ranges = (heapq.merge(*group) for _, group in groupby(segments, key=lambda segment: segment.hi))
    pending = (ENTRY.unpack(entry) for entry in tail)
    return (
        (token, change, lane.region)
        for token, change in chain(chain.from_iterable(ranges), pending)
    )


def entries(lane: Lane, segments: Sequence[Segment], tail: Sequence[bytes]) -> Iterator[Entry]:
    """The same, as entries."""
    return entries_of(changes(lane, segments, tail))


def page(
    lane: Lane,
    above: str | None,
    upto: str | None,
    most: int,
    *,
    consistent: bool,
    read_time_max_ms: int,
    at_home: bool = True,
) -> Program[list[Entry]]:
    """The first `most` entries of a lane with tokens above `above`, at or below `upto`, in order.

    at_home: whether the lane's own Region reads. Raises DamagedItem, NotYetReplicated, ReadTooSlow
    and the TableErrors.
    """

    def attempt(_: Instant) -> Program[tuple[Found | None, bool]]:
        item = yield Get(items.checkpoint_key(lane), consistent)
        checkpoint = items.checkpoint_of(lane, item) if item is not None else None
        found: Found | None = []
        if checkpoint is not None:
            sees_all = consistent and at_home
            found = yield from _folded(lane, checkpoint, above, upto, most, consistent, sees_all)
        is_full = found is not None and len(found) == most
        if found is not None and not is_full:
            found += yield from _tail(lane, checkpoint, above, upto, most - len(found), consistent)
        return found, not is_full

    _, found = yield from restart(lane, attempt, read_time_max_ms)
    return list(entries_of((token, change, lane.region) for token, change in found))


def _tail(
    lane: Lane,
    checkpoint: Checkpoint | None,
    above: str | None,
    upto: str | None,
    most: int,
    consistent: bool,
) -> Program[Found]:
    start = max(filter(None, (above, checkpoint.watermark if checkpoint else None)), default=None)
    tail = yield from Tail(lane, start, upto, consistent=consistent, limit=most).take(most)
    return list(map(ENTRY.unpack, tail))


def _folded(
    lane: Lane,
    checkpoint: Checkpoint,
    above: str | None,
    upto: str | None,
    most: int,
    consistent: bool,
    sees_all: bool,
) -> Program[Found | None]:
    """The entries from segments; None when one of these has not come that the checkpoint counts.

    sees_all: whether the read shows every commit that has landed.
    """
    lowest = Lowest(
        tokens.to_bytes(above) if above else b"",
        tokens.to_bytes(upto) if upto else TOKENS_UPTO,
        most,
    )
    after = items.segments_of_hi(above) if above else items.SEGMENTS_FROM
    pages = Pages(Query(items.fold_pk(lane), after, items.SEGMENTS_UPTO, 1, consistent))
    size, upto_the_end = SEGMENTS_AT_ONCE, True
    while pages.more and not lowest.is_final():
        answer: Page = yield from pages.read()
        segments = (items.segment_of(lane, item) for item in answer.items)
        lowest.take([segment for segment in segments if segment.version <= checkpoint.version])
        if lowest.is_within_hi():  # all others of this hi may matter, and none above it
            upto_the_end = False
            upto_hi = items.segments_of_hi(lowest.hi)
            pages.next = pages.next._replace(upto=upto_hi, limit=None)
        else:
            pages.next = pages.next._replace(limit=size)
            size = min(2 * size, SEGMENTS_MAX)
    if upto_the_end and above is None:
        return lowest.entries if lowest.count == checkpoint.count else None
    if lowest.newest == checkpoint.version:
        return lowest.entries
    # The checkpoint's transaction may still be landing. Then its segment matters only if its hi is
    # among those that were read.
    last, read_upto = checkpoint.last, lowest.complete if lowest.is_final() else lowest.hi
    if last > (above or "") and (upto_the_end or last <= read_upto):
        return None
    # Where the checkpoint came before its segments, those of several commits may be on their way.
    # If the last one is there, so are the others. None has a hi above the watermark.
    if not sees_all and (above or "") < checkpoint.watermark:
        newest = items.segment_key(lane, last, checkpoint.version)
        if (yield Get(newest, consistent)) is None:
            return None
    return lowest.entries


@dataclass(slots=True)
class Lowest:
    """The lowest `most` entries above `above`, at or below `upto`, of segments that come in the
    order of their hi.

    count, newest: the number of all entries that came, wanted or not, and the highest version. hi:
    of the last segment that came; complete: the hi before it, up to which every segment came.
    """

    above: bytes
    upto: bytes
    most: int
    entries: list[tuple[bytes, int]] = field(default_factory=list)
    count: int = 0
    newest: int = 0
    hi: str = ""
    complete: str = ""

    def take(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            if segment.hi != self.hi:
                self.complete, self.hi = self.hi, segment.hi
            self.count += len(segment)
            self.newest = max(self.newest, segment.version)
        wanted = (
            [entry for entry in segment if self.above < entry[0] <= self.upto]
            for segment in segments
        )
        self.entries = list(islice(heapq.merge(self.entries, *wanted), self.most))

    def is_final(self) -> bool:
        """Whether no later segment can hold an entry that belongs here."""
        return self._last <= self.complete

    def is_within_hi(self) -> bool:
        """Whether no segment of a later hi can hold an entry that belongs here."""
        return self._last <= self.hi

    @property
    def _last(self) -> str:
        """The highest token that may belong here."""
        is_full = len(self.entries) == self.most
        return tokens.from_bytes(self.entries[-1][0] if is_full else self.upto)
