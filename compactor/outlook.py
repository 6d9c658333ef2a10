"""What there is to do in a lane, and when: so that whoever is told of a lane looks before it visits.

Rule 1: the program `outlook` reads a few items, whatever the lane holds: of the tail so many that they hold `fold_min`
entries, and of what lies below the watermark, if that is asked for, the first.
Rule 2: a tail too short to fold is nothing to do.
Rule 3: a watermark that is ahead, because clocks were, passes by changes that come in time and that nobody names; so
what lies below such a one is always looked at.
Rule 4: it reads eventually consistently, for half the price: what it may not see was put a moment ago, and whoever put
that is about to ring.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compactor.listing import cover
from ledger import items, tokens
from ledger.entries import time_ms
from ledger.lane.tail import HIGHEST, LOWEST, Pages, bound, every_item
from ledger.requests import Get, Item, Page, Program, Query
from ledger.settings import Settings
from ledger.values import Checkpoint, Lane


@dataclass(frozen=True, slots=True)
class Outlook:
    """tail: entries above the watermark, counted up to `fold_min`. fold_ms: when so many are old enough to be folded;
    None when there are fewer.

    below: there are entries at or below the watermark to look at: folded ones that wait for clean, or strays; None
    where nobody looked.
    """

    checkpoint: Checkpoint | None
    tail: int = 0
    fold_ms: int | None = None
    below: bool | None = None


def outlook(
    lane: Lane, settings: Settings, *, below: bool = False, now_ms: int = tokens.TIME_MS_MAX
) -> Program[Outlook]:
    """Look at one lane. Raises DamagedItem and the TableErrors.

    below: look below the watermark, too; so it does where at `now_ms` new changes may still come there in time.
    """
    item: Item | None = yield Get(items.checkpoint_key(lane), False)
    checkpoint = items.checkpoint_of(lane, item) if item is not None else None
    if checkpoint is not None and tokens.time_ms(checkpoint.watermark) > now_ms - settings.allowed_lateness_ms:
        below = True
    watermark = checkpoint.watermark if checkpoint else None
    tail, straddling = yield from _tail(lane, watermark, settings.fold_min)
    is_due = len(tail) == settings.fold_min
    fold_ms = time_ms(tail[-1]) + settings.allowed_lateness_ms if is_due else None
    if not below:
        return Outlook(checkpoint, len(tail), fold_ms)
    first: Sequence[Item] = ()
    if watermark is not None:
        end = items.tail_after(watermark)
        first = yield from every_item(items.delta_pk(lane), None, end, most=1, consistent=False)
    # Of a lane that is quiet nobody else would find what a pack that reaches above the watermark holds below it.
    found = bool(first) or (yield from _unlisted(lane, straddling))
    return Outlook(checkpoint, len(tail), fold_ms, found)


def _tail(lane: Lane, watermark: str | None, most: int) -> Program[tuple[list[bytes], list[bytes]]]:
    """The tokens of the lowest `most` entries above the watermark in the first items that hold so many; and what else
    these items hold."""
    above = bound(watermark, LOWEST)
    pages = Pages(Query(items.delta_pk(lane), items.tail_after(watermark), None, most, False))
    tail: set[bytes] = set()
    straddling: set[bytes] = set()
    while pages.more and len(tail) < most:
        page: Page = yield from pages.read()
        for each in page.items:
            entries = items.entries_of(lane, each)
            tail.update(entries.between(above, HIGHEST).tokens)
            straddling.update(entries.between(LOWEST, above).apart)
    return sorted(tail)[:most], sorted(straddling)


def _unlisted(lane: Lane, entries: Sequence[bytes]) -> Program[bool]:
    """Whether one of the entries below the watermark is listed nowhere."""
    left = entries
    while left:
        found = yield from cover(lane, left, consistent=False)
        if found.unlisted:
            return True
        left = left[len(found.entries) :]
    return False
