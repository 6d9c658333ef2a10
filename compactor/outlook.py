"""What there is to do in a lane, and when: so that its next visit can be planned.

Rule 1: the program `outlook` makes at most four reads, each of a few items, whatever the lane holds; read strongly it
misses no delta that was there when it began.
Rule 2: a tail too short to fold is nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ledger import items, tokens
from ledger.errors import DamagedItem
from ledger.paging import every_item
from ledger.requests import Get, Item, Program, key_of
from ledger.settings import Settings
from ledger.values import Lane


@dataclass(frozen=True, slots=True)
class Outlook:
    """tail: deltas above the watermark; `outlook` counts `fold_min` at most. fold_ms: when they may be folded, or None.

    below: there are deltas at or below the watermark (folded ones that wait for clean, or strays).
    noted_ms: the time of the clean note, if there is one and it matters.
    """

    tail: int = 0
    fold_ms: int | None = None
    below: bool = False
    noted_ms: int | None = None

    @classmethod
    def of(cls, lane: Lane, item: Item | None, sks: Sequence[str], settings: Settings) -> Outlook:
        """From the checkpoint, and the sort keys of all deltas or of so many that it makes no difference.

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
    pk, below = items.delta_pk(lane), list[Item]()
    item: Item | None = yield Get(items.checkpoint_key(lane), consistent)
    watermark = items.checkpoint_of(lane, item).watermark if item is not None else None
    tail = yield from every_item(pk, watermark, None, most=settings.fold_min, consistent=consistent)
    if watermark is not None:
        below = yield from every_item(pk, None, watermark, most=1, consistent=consistent)
    found = Outlook.of(lane, item, [key_of(each).sk for each in (*below, *tail)], settings)
    if not found.below:
        return found
    noted: Item | None = yield Get(items.note_key(lane), consistent)
    return replace(found, noted_ms=items.note_of(lane, noted).noted_ms) if noted is not None else found
