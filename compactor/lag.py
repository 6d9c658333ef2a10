"""The program `lag`: what waits for the compactor in a lane.

Rule 1: nothing is written, and reads are eventually consistent where that is enough to say how far behind.
Rule 2: a damaged lane is told as damaged; it hides no other.
"""

from dataclasses import dataclass

from compactor.listing import Below
from ledger import items, tokens
from ledger.errors import DamagedItem, LaneDamaged
from ledger.lane.tail import TailSum
from ledger.requests import Get, Item, Program
from ledger.values import Checkpoint, Lane


@dataclass(frozen=True, slots=True)
class LaneLag:
    """A lane as it stands. tail, strays, to_clean: deltas. oldest_ms, watermark_ms: the times in tokens.

    noted_ms: since when `to_clean` waits for `keep_ms`: the time of the clean note, or of a first commit, which nobody
    could have noted before. None: it waits for a visit that notes it, or there is nothing to clean."""

    lane: Lane
    tail: int = 0
    oldest_ms: int | None = None
    watermark_ms: int | None = None
    strays: int = 0
    to_clean: int = 0
    noted_ms: int | None = None
    damage: str | None = None


def lag(lane: Lane) -> Program[LaneLag]:
    """Look at one lane: its checkpoint, its tail, and what lies at or below the watermark."""
    try:
        item: Item | None = yield Get(items.checkpoint_key(lane))
        checkpoint = items.checkpoint_of(lane, item) if item is not None else None
        watermark = checkpoint.watermark if checkpoint else None
        tail = yield from _tail(lane, watermark)
        strays, to_clean = (yield from _below(lane, watermark)) if watermark else (0, 0)
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


def _tail(lane: Lane, after: str | None) -> Program[TailSum]:
    tail = TailSum(lane, after, consistent=False)
    while tail.more:
        yield from tail.read()
    return tail


def _below(lane: Lane, watermark: str) -> Program[tuple[int, int]]:
    """(strays, listed deltas that wait for clean) at or below the watermark."""
    strays = listed = 0
    below = Below(lane, watermark, consistent=False)
    while below.more:
        found = yield from below.read()
        listed += len(found.entries) - len(found.unlisted)
        strays += len(found.unlisted)
    return strays, listed
