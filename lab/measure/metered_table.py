"""A table in memory whose requests are charged, by AWS's published rules; what a call costs there;
and `Shop`, the shipped classes on such tables, with a clock of ours, so that nothing waits and
every run prints the same.

Rule 1: A write costs the larger of the item before and after, also when its condition failed, of a
transaction twice (UNITS). What a refused Update would have made counts as what there was.
Rule 2: A batch rounds up item by item, a page of a Query or Scan once; an item that is not there
costs the least.
Rule 3: No other error costs anything: AWS names no units for it.
Rule 4: A page ends where DynamoDB's does. A Scan is the table's own work, which deletes what has
outlived its time: it is not charged.

UNITS https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from compactor import Compactor
from ledger import Change, Ledger, Settings
from ledger.core.conditions import Absent, has
from ledger.core.cost import Item, item_bytes, read_units, write_units
from ledger.core.requests import (
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
from ledger.tables.ask import STATEMENTS_MAX
from ledger.tables.memory import MemoryTable
from reader import Reader

TABLE, HOME = "counters", "eu-west-1"
START_MS = 1_800_000_000_000
PAGE_BYTES, PAGE_ITEMS = 1_000_000, 100_000


@dataclass(frozen=True, slots=True)
class Charge:
    """Requests, and their read and write units: a sum that can be subtracted."""

    requests: int = 0
    read_units: float = 0.0
    write_units: int = 0

    def __add__(self, other: Charge) -> Charge:
        return Charge(
            self.requests + other.requests,
            self.read_units + other.read_units,
            self.write_units + other.write_units,
        )

    def __sub__(self, other: Charge) -> Charge:
        return self + Charge(-other.requests, -other.read_units, -other.write_units)


class MeteredTable:
    """`cost`: of all requests so far."""

    one_at_a_time = True  # threads at once would lose a part of the sum

    def __init__(self) -> None:
        self.table = MemoryTable(lists=False, page_size=PAGE_ITEMS)
        self.cost = Charge()

    def answer(self, request: Request, /) -> Any:
        if isinstance(request, Together):
            return tuple(map(self.answer, request.requests))
        writes = writes_of(request)
        before = [self.table.items.get(write.key) for write in writes]
        answer = self._page(request) if isinstance(request, Query) else self.table.answer(request)
        self.cost += charge_of(request, answer, list(zip(writes, before, strict=True)))
        return answer

    def _page(self, request: Query) -> Page:
        page: Page = self.table.answer(request)
        left, count = PAGE_BYTES, 0
        while count < len(page.items) and left >= 0:
            left -= item_bytes(page.items[count])
            count += 1
        # a full page never says that it was the last
        if count < len(page.items) or count == request.limit:
            return Page(page.items[:count], page.items[count - 1]["sk"]["S"])
        return page


def writes_of(request: Request) -> list[Write]:
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


def charge_of(request: Request, answer: Any, writes: list[tuple[Write, Item | None]]) -> Charge:
    match request:
        case Get(_, consistent) | GetMany(_, consistent):
            found = answer if isinstance(request, GetMany) else (answer,)
            return Charge(
                1, sum(read_units(item_bytes(item or {}), consistent=consistent) for item in found)
            )
        case Query():
            return Charge(
                1, read_units(sum(map(item_bytes, answer.items)), consistent=request.consistent)
            )
    is_batch, transactional = (
        isinstance(request, PutMany | DeleteMany),
        isinstance(request, Transact),
    )
    units = 0
    for (write, before), end in zip(
        writes, answer if is_batch else [answer] * len(writes), strict=True
    ):
        applied = end is None or isinstance(end, Written)
        after = becomes(write, before) if applied or isinstance(write, Put) else before
        units += write_units(
            max(item_bytes(before or {}), item_bytes(after or {})), transactional=transactional
        )
    return Charge(1 if transactional else math.ceil(len(writes) / STATEMENTS_MAX), 0.0, units)


def cost(call: Callable[[], object], tables: Collection[MeteredTable]) -> Charge:
    """What these tables charge for all that a call asks of them."""
    before = [table.cost for table in tables]
    call()
    spent = (table.cost - so_far for table, so_far in zip(tables, before, strict=True))
    return sum(spent, start=Charge())


class Shop:
    """A ledger in each Region; a reader and a compactor in the first. `now_ms` moves on by hand."""

    def __init__(self, *regions: str, **settings: Any) -> None:
        self.homes, self.now_ms = regions or (HOME,), float(START_MS)
        self.tables = {region: MeteredTable() for region in self.homes}
        given: Any = {"tables": self.tables, "clock": lambda: int(self.now_ms)}
        of = {
            home: Settings(table=TABLE, region=home, regions=self.homes, **settings)
            for home in self.homes
        }
        self.settings = of[self.homes[0]]
        self.ledgers = {home: Ledger(of[home], **given) for home in self.homes}
        self.ledger = self.ledgers[self.homes[0]]
        self.reader = Reader(self.settings, table=self.tables[self.homes[0]], clock=given["clock"])
        self.compactor = Compactor(self.settings, **given)
        # asks for the table's shape, once a process; the figures are of what comes after
        self.reader.read("another")

    @property
    def cost(self) -> Charge:
        """Of everything so far, in all Regions."""
        return sum((table.cost for table in self.tables.values()), start=Charge())

    def charged(self, call: Callable[[], object]) -> Charge:
        """What a call costs, in all Regions."""
        return cost(call, self.tables.values())

    def add_many(self, changes: Sequence[Change], *, pack: bool = False) -> None:
        """All of them, or the first error."""
        for outcome in self.ledger.add_many(changes, pack=pack):
            if isinstance(outcome, Exception):
                raise outcome
