"""The obvious design, to show what breaks: a transaction deletes deltas and adds their sum to a total; a read sums all.

Rules: it is written as its author would, with a condition on every delete and a total that is added to; nothing of it
is used by the shipped code.
"""

from __future__ import annotations

from functools import partial

from ledger import items
from ledger.paging import every_item
from ledger.requests import Item, Key, Program
from ledger.values import Lane
from simulator.world import Write, Writes


def merge(lane: Lane) -> Program[None]:
    """Delete every delta and add their sum to the total, in one transaction."""
    found = yield from every_item(items.delta_pk(lane), None, None, consistent=True)
    deltas = [item for item in found if "change" in item]
    if deltas:
        total = Write(_total_key(lane), partial(_added, lane, sum(map(_amount, deltas))))
        deletes = (Write(items.key_of(delta), lambda there: None, lambda there: there is not None) for delta in deltas)
        yield Writes((total, *deletes))  # type: ignore[misc]


def read(lane: Lane, *, consistent: bool = True) -> Program[tuple[int, int]]:
    """The sum of the total and of the deltas, and how many items it is the sum of."""
    found = yield from every_item(items.delta_pk(lane), None, None, consistent=consistent)
    return sum(map(_amount, found)), len(found)


def _total_key(lane: Lane) -> Key:
    return Key(items.delta_pk(lane), "total")


def _added(lane: Lane, amount: int, there: Item | None) -> Item:
    key = _total_key(lane)
    total = amount + (_amount(there) if there else 0)
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}, "total": {"N": str(total)}}


def _amount(item: Item) -> int:
    return int(item.get("change", item.get("total", {"N": "0"}))["N"])
