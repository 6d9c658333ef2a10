"""What there is to do in a lane, and when: so that its next visit can be planned.

Rule 1: the program `outlook` reads a few items, whatever the lane holds: of the tail so many that they hold `fold_min`
entries. Read strongly it misses no delta that was there when it began.
Rule 2: a tail too short to fold is nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compactor.listing import cover
from ledger import items, tokens
from ledger.entries import TOKEN_BYTES
from ledger.errors import DamagedItem
from ledger.paging import Pages, every_item
from ledger.requests import Get, Item, Page, Program, Query
from ledger.settings import Settings
from ledger.tail import HIGHEST, LOWEST, bound
from ledger.values import Lane


@dataclass(frozen=True, slots=True)
class Outlook:
    """tail: entries above the watermark; `outlook` counts `fold_min` at most. fold_ms: when they may be, or None.

    below: there are deltas at or below the watermark (folded ones that wait for clean, or strays).
    noted_ms: the time of the clean note, if there is one and it matters.
    """

    tail: int = 0
    fold_ms: int | None = None
    below: bool = False
    noted_ms: int | None = None

    @classmethod
    def of(cls, lane: Lane, item: Item | None, sks: Sequence[str], settings: Settings) -> Outlook:
        """From the checkpoint, and the tokens of all deltas in order, or of so many that it makes no difference.

        Raises DamagedItem.
        """
        watermark = items.checkpoint_of(lane, item).watermark if item is not None else ""
        tail = [sk for sk in sks if sk > watermark]
        below = len(tail) < len(sks)
        if len(tail) < settings.fold_min:
            return cls(len(tail), None, below)
        last = tail[settings.fold_min - 1]
        if not tokens.is_token(last):
            raise DamagedItem(items.delta_pk(lane), last, "the sort key is not a ULID")
        return cls(len(tail), tokens.time_ms(last) + settings.allowed_lateness_ms, below)


def outlook(lane: Lane, settings: Settings, *, consistent: bool = True) -> Program[Outlook]:
    """Look at one lane. Raises DamagedItem and the TableErrors."""
    item: Item | None = yield Get(items.checkpoint_key(lane), consistent)
    watermark = items.checkpoint_of(lane, item).watermark if item is not None else None
    tail, straddling = yield from _tail(lane, watermark, settings.fold_min, consistent)
    below: list[str] = []
    if watermark is not None:
        first = yield from every_item(
            items.delta_pk(lane), None, items.tail_after(watermark), most=1, consistent=consistent
        )
        below = [tokens.from_bytes(items.entries_of(lane, each).tokens[0]) for each in first]
    if straddling and not below:  # of a lane that is quiet nobody else would find what such a pack holds
        below = yield from _unlisted(lane, straddling)
    found = Outlook.of(lane, item, [*below, *tail], settings)
    if not found.below:
        return found
    noted: Item | None = yield Get(items.note_key(lane), consistent)
    return replace(found, noted_ms=items.note_of(lane, noted).noted_ms) if noted is not None else found


def _tail(lane: Lane, watermark: str | None, most: int, consistent: bool) -> Program[tuple[list[str], list[bytes]]]:
    """The tokens of the first items that hold `most` entries above the watermark; and what else these items hold."""
    above = bound(watermark, LOWEST)
    pages = Pages(Query(items.delta_pk(lane), items.tail_after(watermark), None, most, consistent))
    tail: set[bytes] = set()
    straddling: set[bytes] = set()
    while pages.more and len(tail) < most:
        page: Page = yield from pages.read()
        for each in page.items:
            entries = items.entries_of(lane, each)
            tail.update(entries.between(above, HIGHEST).tokens)
            straddling.update(entries.between(LOWEST, above).apart)
    return [tokens.from_bytes(token) for token in sorted(tail)[:most]], sorted(straddling)


def _unlisted(lane: Lane, entries: Sequence[bytes]) -> Program[list[str]]:
    """The first of the entries below the watermark that is listed nowhere, if there is one."""
    left = entries
    while left:
        found = yield from cover(lane, left, consistent=False)
        if found.unlisted:
            return [tokens.from_bytes(found.unlisted[0][:TOKEN_BYTES])]
        left = left[len(found.entries) :]
    return []
