"""The obvious design, to show what breaks: a transaction deletes deltas and adds their sum to a total; a read sums all.

Rule 1: It is written as its author would, with a condition on every delete and a total that is added to.
Rule 2: Nothing of it is used by the shipped code.
"""

from collections.abc import Sequence

from lab.designs.expressions import integer
from ledger import items
from ledger.actions import Add
from ledger.conditions import Absent, Not
from ledger.lane.tail import every_item
from ledger.requests import Delete, Item, Key, Program, Transact, Update, key_of
from ledger.values import Lane


def merging(lane: Lane, deltas: Sequence[Item]) -> Transact:
    """Delete these deltas and add their sum to the total."""
    total = Update(Key(items.delta_pk(lane), "total"), (Add("total", sum(map(_amount, deltas))),))
    return Transact((total, *(Delete(key_of(delta), condition=Not(Absent())) for delta in deltas)))


def deltas_of(lane: Lane) -> Program[list[Item]]:
    found = yield from every_item(items.delta_pk(lane), None, None, consistent=True)
    return [item for item in found if "change" in item]


def merge(lane: Lane) -> Program[None]:
    """Every delta in one transaction."""
    deltas = yield from deltas_of(lane)
    if deltas:
        yield merging(lane, deltas)


def read(lane: Lane, *, consistent: bool = True) -> Program[tuple[int, int]]:
    """The sum of the total and of the deltas, and how many items it is the sum of."""
    found = yield from every_item(items.delta_pk(lane), None, None, consistent=consistent)
    return sum(map(_amount, found)), len(found)


def _amount(item: Item) -> int:
    return integer(item, "change" if "change" in item else "total")
