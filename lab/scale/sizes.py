"""The sizes of a lane's items: those of real ones of a counter whose name has 12 letters."""

from ledger import items
from ledger.entries import ENTRY, Entries, packed
from ledger.units import item_bytes
from ledger.values import Checkpoint, CleanNote, Delta, Lane, Pack, Segment

_LANE, _TOKEN = Lane("eu-west-1", 0, "stock:85123A"), "015JGGKGE064BG4X58772SZHBM"
DELTA_BYTES = item_bytes(items.delta_item(Delta(_LANE, _TOKEN, -6)))
SEGMENT_BYTES = item_bytes(items.segment_item(Segment(_LANE, _TOKEN, 1, Entries.of(()))))
CHECKPOINT_BYTES = item_bytes(
    items.checkpoint_item(Checkpoint(_LANE, -6 * 10**9, 10**9, _TOKEN, version=10**6, last=_TOKEN, committed_ms=10**12))
)
NOTE_BYTES = item_bytes(items.note_item(CleanNote(_LANE, 10**6, 10**12)))
PACK_BYTES = item_bytes(items.pack_item(Pack(_LANE, Entries.of((packed(_TOKEN, -6),))))) - ENTRY.size
"""Of a pack without its entries."""
