"""A table in memory whose requests are charged.

Rule 1: What a request costs follows from the items before and after it, by `charge.py`.
Rule 2: A page ends where DynamoDB's does. A Scan is the table's own work, which deletes what has outlived its time: it
is not charged.
"""

from typing import Any

from lab.measure.charge import Charge, of_items, of_write
from ledger.conditions import Absent, has
from ledger.cost import Item, item_bytes
from ledger.dynamo.ask import STATEMENTS_MAX
from ledger.memory import MemoryTable
from ledger.requests import (
    Delete,
    DeleteMany,
    Get,
    GetMany,
    Page,
    Put,
    PutMany,
    Query,
    Request,
    Together,
    Transact,
    Update,
    Write,
    Written,
    becomes,
    key_of,
)

TABLE = "counters"
PAGE_BYTES, PAGE_ITEMS = 1_000_000, 100_000


class MeteredTable:
    """`cost`: of all requests so far."""

    def __init__(self) -> None:
        self.table = MemoryTable(lists=False, page_size=PAGE_ITEMS)
        self.cost = Charge()

    def answer(self, request: Request, /) -> Any:
        if isinstance(request, Together):
            return tuple(map(self.answer, request.requests))
        writes = _writes(request)
        before = [self.table.items.get(write.key) for write in writes]
        answer = self._page(request) if isinstance(request, Query) else self.table.answer(request)
        self.cost += _charge(request, answer, list(zip(writes, before, strict=True)))
        return answer

    def _page(self, request: Query) -> Page:
        page: Page = self.table.answer(request)
        left, count = PAGE_BYTES, 0
        while count < len(page.items) and left >= 0:
            left -= item_bytes(page.items[count])
            count += 1
        if count < len(page.items) or count == request.limit:  # who has all of a limit is not told that it was the last
            return Page(page.items[:count], page.items[count - 1]["sk"]["S"])
        return page


def _writes(request: Request) -> list[Write]:
    match request:
        case Put() | Update() | Delete():
            return [request]
        case Transact(writes):
            return list(writes)
        case PutMany(items):
            return [Put(item, Absent()) for item in items]
        case DeleteMany(items):
            return [Delete(key_of(item), has(item)) for item in items]
    return []


def _charge(request: Request, answer: Any, writes: list[tuple[Write, Item | None]]) -> Charge:
    match request:
        case Get(_, consistent):
            return Charge(requests=1) + of_items([item_bytes(answer or {})], consistent=consistent)
        case GetMany(_, consistent):
            return Charge(requests=1) + of_items([item_bytes(item or {}) for item in answer], consistent=consistent)
        case Query():
            size = sum(map(item_bytes, answer.items))
            return Charge(requests=1) + of_items([size], consistent=request.consistent)
        case Transact():
            requests, answers, transactional = 1, [answer] * len(writes), True
        case PutMany() | DeleteMany():
            requests, answers, transactional = -(-len(writes) // STATEMENTS_MAX), answer, False
        case _:
            requests, answers, transactional = len(writes), [answer] * len(writes), False
    cost = Charge(requests=requests)
    for (write, before), end in zip(writes, answers, strict=True):
        applied = end is None or isinstance(end, Written)
        after = becomes(write, before) if applied or isinstance(write, Put) else before
        cost += of_write(*(item_bytes(item or {}) for item in (before, after)), applied=applied,
                         transactional=transactional)  # fmt: skip
    return cost
