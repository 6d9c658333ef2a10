"""The obvious design, to show what breaks: a transaction deletes deltas and adds their sum to a total; a read sums all.

Rules: it is written as its author would, with a condition on every delete and a total that is added to; nothing of it
is used by the shipped code.
"""

from __future__ import annotations

from collections.abc import Sequence

from lab.designs.actions import Add
from lab.designs.attributes import integer
from lab.designs.conditions import Missing, Not
from lab.designs.writes import DeleteItem, Transaction, UpdateItem
from ledger import items
from ledger.paging import every_item
from ledger.requests import Item, Key, Program
from ledger.values import Lane
from simulator.world import Write, Writes


def merging(lane: Lane, deltas: Sequence[Item]) -> Transaction:
    """Delete these deltas and add their sum to the total."""
    total = UpdateItem(Key(items.delta_pk(lane), "total"), (Add("total", sum(map(_amount, deltas))),))
    return Transaction((total, *(DeleteItem(items.key_of(delta), condition=Not(Missing())) for delta in deltas)))


def deltas_of(lane: Lane) -> Program[list[Item]]:
    found = yield from every_item(items.delta_pk(lane), None, None, consistent=True)
    return [item for item in found if "change" in item]


def merge(lane: Lane) -> Program[None]:
    """Every delta in one transaction, as a program on the simulator."""
    deltas = yield from deltas_of(lane)
    if deltas:
        writes = merging(lane, deltas).writes
        yield Writes(tuple(Write(each.key, each.becomes, each.holds) for each in writes))  # type: ignore[misc]


def read(lane: Lane, *, consistent: bool = True) -> Program[tuple[int, int]]:
    """The sum of the total and of the deltas, and how many items it is the sum of."""
    found = yield from every_item(items.delta_pk(lane), None, None, consistent=consistent)
    return sum(map(_amount, found)), len(found)


def _amount(item: Item) -> int:
    return integer(item, "change" if "change" in item else "total")
