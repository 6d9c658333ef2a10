"""The program `left`: what a visit leaves to do in a lane, and when, so that its next visit can be planned.

Rules: at most four reads, each of a few items, whatever the lane holds; read strongly it misses no delta that was there
when it began; a tail too short to fold is nothing to do.
"""

from __future__ import annotations

from dataclasses import dataclass

from ledger import items, tokens
from ledger.paging import every_item
from ledger.requests import Get, Item, Page, Program, Query
from ledger.settings import Settings
from ledger.values import Lane


@dataclass(frozen=True, slots=True)
class Left:
    """tail: deltas above the watermark, counted up to `fold_min`. fold_ms: when they may be folded; None: too few.

    below: there are deltas at or below the watermark (folded ones that wait for clean, or strays).
    noted_ms: the time of the clean note, if there is one and it matters.
    """

    tail: int = 0
    fold_ms: int | None = None
    below: bool = False
    noted_ms: int | None = None


def left(lane: Lane, settings: Settings, *, consistent: bool = True) -> Program[Left]:
    """Look at one lane. Raises DamagedItem and the TableErrors."""
    pk = items.delta_pk(lane)
    item: Item | None = yield Get(items.checkpoint_key(lane), consistent)
    watermark = items.checkpoint_of(lane, item).watermark if item is not None else None
    tail = yield from every_item(pk, watermark, None, most=settings.fold_min, consistent=consistent)
    fold_ms = None
    if len(tail) == settings.fold_min:
        fold_ms = tokens.time_ms(items.delta_of(lane, tail[-1]).token) + settings.allowed_lateness_ms
    if watermark is None:
        return Left(len(tail), fold_ms)
    page: Page = yield Query(pk, None, watermark, limit=1, consistent=consistent)
    if not page.items:
        return Left(len(tail), fold_ms)
    noted: Item | None = yield Get(items.note_key(lane), consistent)
    return Left(len(tail), fold_ms, True, items.note_of(lane, noted).noted_ms if noted is not None else None)
