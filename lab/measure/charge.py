"""`Charge`: what requests cost by AWS's published rules, as a sum that can be subtracted; and the rules.

Rule 1: A write costs the larger of the item before and after, also when its condition failed, of a transaction twice
(UNITS). What a refused Update would have made counts as what there was.
Rule 2: A batch rounds up item by item, a page of a Query or Scan once; an item that is not there costs the least.
Rule 3: No other error costs anything: AWS names no units for it.

UNITS https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ledger.cost import read_units, write_units


@dataclass(frozen=True, slots=True)
class Charge:
    """Requests, their read and write units in their Region, and the write units each further Region pays again."""

    requests: int = 0
    read_units: float = 0.0
    write_units: int = 0
    replicated_units: int = 0

    def __add__(self, other: "Charge") -> "Charge":
        return Charge(
            self.requests + other.requests,
            self.read_units + other.read_units,
            self.write_units + other.write_units,
            self.replicated_units + other.replicated_units,
        )

    def __sub__(self, other: "Charge") -> "Charge":
        return self + Charge(-other.requests, -other.read_units, -other.write_units, -other.replicated_units)


def of_write(before: int, after: int, *, applied: bool, transactional: bool = False) -> Charge:
    """One item's write, from its bytes before and after, or as it was asked for."""
    units = write_units(max(before, after), transactional=transactional)
    return Charge(write_units=units, replicated_units=units if applied else 0)


def of_items(sizes: Iterable[int], *, consistent: bool) -> Charge:
    """Items that are read each for itself."""
    return Charge(read_units=sum(read_units(size, consistent=consistent) for size in sizes))
