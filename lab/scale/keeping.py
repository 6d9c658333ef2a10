"""What it costs to delete folded items, and what to keep them: `Settings.clean`.

Rule 1: A delete is charged as the write of its item, in every Region; keeping it is its storage, in every Region, month
after month.
Rule 2: The break-even is the age at which a kept item has cost what its delete would have. What cleans read and note on
the way is told beside the units (lives.py) and is not in it.
"""

from dataclasses import dataclass

from ledger.cost import write_units
from ledger.entries import ENTRY
from ledgerctl.bill import Usage, million_changes, storage_month
from ledgerctl.sizes import DELTA_BYTES, PACK_BYTES


@dataclass(frozen=True, slots=True)
class Keeping:
    """Dollars for a million changes, `each` of them in an item: their deletes, and a month of keeping them."""

    each: int
    regions: int

    @property
    def item_bytes(self) -> int:
        return DELTA_BYTES if self.each == 1 else PACK_BYTES + self.each * ENTRY.size

    @property
    def deletes(self) -> float:
        return million_changes(Usage(write_units(self.item_bytes) / self.each, 0), self.regions)

    @property
    def month(self) -> float:
        of_a_change = Usage(0, 0, item_bytes=self.item_bytes / self.each, items=1 / self.each)
        return storage_month(of_a_change, 1e6, self.regions)

    @property
    def months(self) -> float:
        """Until keeping has cost what deleting would have."""
        return self.deletes / self.month

    @property
    def months_of_load(self) -> float:
        """Until all that was kept of an even load has cost what deleting all of it would have: twice as long, because
        the youngest was hardly kept yet."""
        return 2 * self.months - 1
