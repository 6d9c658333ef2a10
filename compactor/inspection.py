"""Inspects a lane without a visit: what waits in it, what there is to do, and whether anybody reads
it.

Rule 1: It writes nothing. Reads are eventually consistent where that is enough: an item that they
miss was put a moment ago, and its stream record is about to ring.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compactor.listing import Below, covers
from ledger.core import items, tokens
from ledger.core.entries import time_ms
from ledger.core.errors import SOURCE, DamagedItem, LaneDamaged, LaneUnread
from ledger.core.requests import Get, Item, Page, Program, Query
from ledger.core.settings import Settings
from ledger.core.values import Checkpoint, Lane
from ledger.lane.directory import with_changes
from ledger.lane.tail import HIGHEST, LOWEST, Pages, TailSum, bound, every_item

BEYOND = 4
"""How many shards beyond those of the settings it looks at. If another process has more shards,
every change lands in one of these by chance, so a handful of changes is enough to show it."""


@dataclass(frozen=True, slots=True)
class LaneLag:
    """A lane at this moment. tail, strays, to_clean: deltas. oldest_ms, watermark_ms: the times in
    tokens.

    noted_ms: since when `to_clean` waits for `keep_ms`: the time of the clean note, or of a first
    commit, before which there was nothing to note. None: it waits for a visit that notes it, or
    there is nothing to clean."""

    lane: Lane
    tail: int = 0
    oldest_ms: int | None = None
    watermark_ms: int | None = None
    strays: int = 0
    to_clean: int = 0
    noted_ms: int | None = None
    damage: str | None = None


def lag(lane: Lane) -> Program[LaneLag]:
    """Count all that waits in a lane: its tail, and what lies at or below the watermark.

    A damaged lane is reported as damaged, so that the caller goes on with the others.
    """
    try:
        item: Item | None = yield Get(items.checkpoint_key(lane))
        checkpoint = items.checkpoint_of(lane, item) if item is not None else None
        watermark = checkpoint.watermark if checkpoint else None
        tail = TailSum(lane, watermark, consistent=False)
        while tail.more:
            yield from tail.read()
        strays = to_clean = 0
        below = Below(lane, watermark, consistent=False) if watermark else None
        while below is not None and below.more:
            found = yield from below.read()
            strays += len(found.unlisted)
            to_clean += len(found.entries) - len(found.unlisted)
        noted_ms = (yield from _noted(checkpoint)) if checkpoint and to_clean else None
    except (DamagedItem, LaneDamaged) as damage:
        return LaneLag(lane, damage=str(damage))
    folded_ms = tokens.time_ms(watermark) if watermark else None
    return LaneLag(lane, tail.count, tail.oldest_ms, folded_ms, strays, to_clean, noted_ms)


def _noted(checkpoint: Checkpoint) -> Program[int | None]:
    item: Item | None = yield Get(items.note_key(checkpoint.lane), False)
    if item is not None:
        return items.note_of(checkpoint.lane, item).noted_ms
    return checkpoint.committed_ms if checkpoint.version == 1 else None


@dataclass(frozen=True, slots=True)
class Outlook:
    """tail: entries above the watermark, counted up to `fold_min`. fold_ms: when so many are old
    enough to fold; else None.

    below: whether it has entries at or below the watermark: folded ones that wait for clean, or
    strays; None: unknown.
    """

    checkpoint: Checkpoint | None
    tail: int = 0
    fold_ms: int | None = None
    below: bool | None = None


def outlook(
    lane: Lane, settings: Settings, *, below: bool = False, now_ms: int = tokens.TIME_MS_MAX
) -> Program[Outlook]:
    """Look at a few items of a lane, whatever it holds: at so many of the tail that they hold
    `fold_min` entries. A shorter tail is nothing to do.

    below: look at the first item below the watermark, too. Raises DamagedItem and the TableErrors.
    """
    item: Item | None = yield Get(items.checkpoint_key(lane), False)
    checkpoint = items.checkpoint_of(lane, item) if item is not None else None
    if (
        checkpoint is not None
        and tokens.time_ms(checkpoint.watermark) > now_ms - settings.allowed_lateness_ms
    ):
        # clocks were ahead: changes may still come below the watermark in time, and nobody names
        # them
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
    # in a quiet lane nobody else would find what a pack that reaches above the watermark has below
    found = bool(first) or bool((yield from covers(lane, straddling, consistent=False)).unlisted)
    return Outlook(checkpoint, len(tail), fold_ms, found)


def _tail(lane: Lane, watermark: str | None, most: int) -> Program[tuple[list[bytes], list[bytes]]]:
    """The tokens of the lowest `most` entries above the watermark in the first items that hold so
    many; and the entries of these items at or below it."""
    above = bound(watermark, LOWEST)
    pages = Pages(Query(items.delta_pk(lane), items.tail_after(watermark), None, most, False))
    tail: set[bytes] = set()
    straddling: set[bytes] = set()
    while pages.more and len(tail) < most:
        page: Page = yield from pages.read()
        for item in page.items:
            entries = items.entries_of(lane, item)
            tail.update(entries.between(above, HIGHEST).tokens)
            straddling.update(entries.between(LOWEST, above).apart)
    return sorted(tail)[:most], sorted(straddling)


def error_of(lane: Lane) -> LaneUnread:
    """The error for a lane that no reader looks at: its changes are in no value."""
    return LaneUnread(
        f"{lane}: this lane has changes, and no reader of these settings looks at it: they are in "
        "no value. Nothing is lost. Some process adds with other regions or shards, or "
        f"without its limit: see `lanes-unread` in docs/operations/values.md of {SOURCE}."
    )


def unread_beyond(counter: str, region: str, settings: Settings) -> Program[list[Lane]]:
    """The lanes of a counter in a Region that hold something and that nobody reads, up to BEYOND
    shards further. Of a counter with a limit that is every lane with deltas. A scan sees all such
    lanes (lanes.py).

    Raises the TableErrors.
    """
    plan = settings.plan(counter)
    first = plan.shards if plan.limit is None else 0
    lanes = [Lane(region, shard, counter) for shard in range(first, plan.shards + BEYOND)]
    return (yield from with_changes(lanes, consistent=False))
