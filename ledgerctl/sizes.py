"""The sizes of a lane's items, and the units that they take on average.

Rule 1: Sizes are those of real items of a counter whose name has 12 letters.
Rule 2: A mean over a range of sizes is exact, so that a unit that is only sometimes begun is counted that often. A
range is (low, high), both of them possible.
"""

import math
from dataclasses import dataclass

from ledger import items
from ledger.cost import READ_UNIT_BYTES, TRANSACTIONAL, WRITE_UNIT_BYTES, item_bytes, write_units
from ledger.entries import ENTRY, Entries, packed
from ledger.lane import directory
from ledger.values import Checkpoint, CleanNote, Delta, Lane, Pack, Segment

Range = tuple[float, float]

PAGE_BYTES = 1024 * 1024

_LANE, _TOKEN = Lane("eu-west-1", 0, "stock:85123A"), "015JGGKGE064BG4X58772SZHBM"
DELTA_BYTES = item_bytes(items.delta_item(Delta(_LANE, _TOKEN, -6)))
SEGMENT_BYTES = item_bytes(items.segment_item(Segment(_LANE, _TOKEN, 1, Entries.of(()))))
CHECKPOINT_BYTES = item_bytes(
    items.checkpoint_item(Checkpoint(_LANE, -6 * 10**9, 10**9, _TOKEN, version=10**6, last=_TOKEN, committed_ms=10**12))
)
NOTE_BYTES = item_bytes(items.note_item(CleanNote(_LANE, 10**6, 10**12)))
DIRECTORY_BYTES = item_bytes(directory.item_of(_LANE))
_ENTRY = Entries.of((packed(_TOKEN, -6),))
PACK_BYTES = item_bytes(items.pack_item(Pack(_LANE, _ENTRY))) - ENTRY.size
"""Of a pack without its entries."""


@dataclass(frozen=True, slots=True)
class Tail:
    """How a lane's changes stand until they are folded and cleaned: `pack` of them in one item."""

    pack: int = 1

    @property
    def _bytes(self) -> int:
        return DELTA_BYTES if self.pack == 1 else PACK_BYTES + ENTRY.size * self.pack

    @property
    def bytes(self) -> float:
        """Of a change."""
        return self._bytes / self.pack

    @property
    def put_units(self) -> float:
        """A change's share of the put of its item, and of the delete."""
        return write_units(self._bytes) / self.pack

    def units(self, low: float, high: float) -> float:
        """Read units, read strongly, of anywhere between so many and so many changes."""
        return mean_units(low * self.bytes, high * self.bytes)


def segment_units(entries: Range) -> float:
    """Read units of a segment, read strongly."""
    low, high = (SEGMENT_BYTES + ENTRY.size * n for n in entries)
    return mean_units(low, high)


def commit_units(entries: Range) -> float:
    """The write units of a commit: the checkpoint and the segment, each twice."""
    low, high = ((SEGMENT_BYTES + ENTRY.size * n) / WRITE_UNIT_BYTES for n in entries)
    return write_units(CHECKPOINT_BYTES, transactional=True) + TRANSACTIONAL * _mean_ceil(low, high)


def above(least: float, more: float, step: float) -> float:
    """How many steps a number is above 0, on average, that is `least` and, drawn as waiting times are, `more`."""
    whole = math.floor(least / step)
    return whole + math.exp(-((whole + 1) * step - least) / more) / (1 - math.exp(-step / more))


def listed_units(deltas: float, segment: float, tail: Tail, above: float = 0.0) -> float:
    """Read units of deltas below the watermark with the segments that list them, all eventually consistent.

    A segment is read alone; the look for others under its hi finds an empty page. What two pages share is read twice.
    above: deltas above the watermark that are read, too, because a pack of theirs might hold some below it.
    """
    size = (deltas + above) * tail.bytes
    covers = max(1.0, deltas / segment) + size // PAGE_BYTES
    return max(0.5, (size / READ_UNIT_BYTES + 0.5) / 2) + covers * (segment_units((segment, segment)) / 2 + 0.5)


def mean_units(low: float, high: float) -> float:
    """Read units, read strongly, of what has anywhere between so many and so many bytes."""
    return _mean_ceil(low / READ_UNIT_BYTES, high / READ_UNIT_BYTES)


def _mean_ceil(low: float, high: float) -> float:
    """The mean of `ceil` between these two."""
    if high - low < 1e-6:
        return max(1, math.ceil(high))
    return (_sum_of_ceil(high) - _sum_of_ceil(low)) / (high - low)


def _sum_of_ceil(end: float) -> float:
    """The integral of `ceil` from 0 to here."""
    whole = math.ceil(end)
    return whole * (whole - 1) / 2 + whole * (end - whole + 1)
