"""Sums a lane's segments anew: rebuild writes the result, and verify compares with it.

Rule 1: Segments are read strongly and page by page, so memory does not grow with the history.
Rule 2: The distinct `hi` partition the order of tokens, and list a token once; else two segments
overlap and the lane is damaged.
Rule 3: It compares tokens only where a range has several segments: mostly a range has one.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from ledger.core import items, tokens
from ledger.core.days import Sums, add_to
from ledger.core.errors import LaneDamaged
from ledger.core.requests import Page, Program, Query
from ledger.core.values import Lane, Segment
from ledger.lane.tail import Pages


@dataclass(slots=True)
class Recount:
    """The sums over a lane's segments."""

    total: int = 0
    count: int = 0
    watermark: str | None = None
    version: int = 0
    by_day: Sums = field(default_factory=dict)


class Overlap(LaneDamaged):
    """Two segments list a delta twice, or one lists a delta in the other's range: one of them is
    an orphan.
    """

    def __init__(self, first: Segment, second: Segment) -> None:
        one, other = (items.segment_key(s.lane, s.hi, s.version).sk for s in (first, second))
        super().__init__(
            f"{first.lane}: segment {other!r} overlaps {one!r}: it lists a delta twice, or one "
            "outside its range. Nothing was written. Stop the compactor, then rebuild the lane."
        )
        self.segments = first, second


def recount(
    lane: Lane, *, versions_upto: int | None = None, without: Collection[Segment] = ()
) -> Program[Recount]:
    """Sum the segments, except those in `without`.

    Raises Overlap, and LaneDamaged when two segments that overlap list a token with two changes.
    """
    sums = Recount()
    below: Segment | None = None  # a segment of the hi before the current one
    under: list[Segment] = []  # the segments of the current hi
    listed: set[bytes] = set()  # their tokens, where there are several
    pages = Pages(Query(items.fold_pk(lane), items.SEGMENTS_FROM, items.SEGMENTS_UPTO))
    while pages.more:
        page: Page = yield from pages.read()
        for item in page.items:
            segment = items.segment_of(lane, item)
            if segment in without or (
                versions_upto is not None and segment.version > versions_upto
            ):
                continue
            if segment.hi != sums.watermark:
                below, under, listed = under[-1] if under else None, [], set()
                sums.watermark = segment.hi
            found = segment.entries.tokens
            if below is not None and found and found[0] <= tokens.to_bytes(below.hi):
                raise _overlap(below, segment)
            if under:
                listed.update(under[-1].entries.tokens)
                if not listed.isdisjoint(found):
                    first = next(
                        other for other in under if not {*found}.isdisjoint(other.entries.tokens)
                    )
                    raise _overlap(first, segment)
            under.append(segment)
            _add(sums, segment)
    return sums


def _add(sums: Recount, segment: Segment) -> None:
    sums.total += segment.entries.total
    sums.count += len(segment)
    sums.version = max(sums.version, segment.version)
    add_to(sums.by_day, segment.entries)


def _overlap(first: Segment, second: Segment) -> LaneDamaged:
    changes = dict(first)
    for token, change in second:
        if changes.get(token, change) != change:
            return LaneDamaged(
                f"{first.lane}: two segments list the delta {tokens.from_bytes(token)}, once as "
                f"{changes[token]} and once as {change}. Nothing was written. Only a person can "
                "say which of them counts."
            )
    return Overlap(first, second)
