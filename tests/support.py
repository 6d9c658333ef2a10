"""Worlds for the tests of reader and compactor: Regions in memory, programs one step at a time, every order of them.

Delta n is asked for at second n and changes its counter by 4**n, so a sum says which deltas it holds, and a wrong sum
which of them is missing or doubled.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from compactor import Compactor, Report
from lab.histories.checker import deltas_in
from ledger import items, tokens
from ledger.errors import LedgerError, Unavailable
from ledger.lane.tail import through
from ledger.memory import MemoryTable
from ledger.requests import (
    DeleteMany,
    Get,
    GetMany,
    Instant,
    Item,
    Key,
    Now,
    Program,
    Put,
    Query,
    Request,
    Result,
    Transact,
    keyed,
    run,
)
from ledger.settings import Settings
from ledger.values import Delta, Lane
from reader import Reader

A, B = "eu-west-1", "us-east-1"
COUNTER = "stock:85123A"
LANE = Lane(A, 0, COUNTER)
NOW_MS, LATENESS_MS, READ_MS, KEEP_MS = 1_000_000, 10_000, 60_000, 600_000


def settings(region: str = A, **changed: Any) -> Settings:
    """Settings of both Regions under which a single delta is folded."""
    return Settings(**{"table": "counters", "region": region, "regions": (A, B), "fold_min": 1, **changed})


def token(n: int, at_ms: int | None = None) -> str:
    return tokens.make(n * 1_000 if at_ms is None else at_ms, n.to_bytes(tokens.RANDOM_BYTES, "big"))


def delta(n: int, lane: Lane = LANE, at_ms: int | None = None) -> Delta:
    return Delta(lane, token(n, at_ms), 4**n)


def summed(value: int) -> set[int]:
    """The deltas that a sum holds; fails unless it is the sum of a real set."""
    held = deltas_in(value)
    assert held is not None, f"{value} is no sum of a set: a delta is doubled, or one above it is missing"
    return {*held}


class Region(MemoryTable):
    """A Region's replica: tells what it was `asked`, and the time; may be `down`, or lag for eventual reads."""

    def __init__(self, **given: Any) -> None:
        super().__init__(lists=False, **given)
        self.asked: list[Request] = []
        self.now_ms = self.steady_ms = NOW_MS
        self.down = False
        self.lagging: MemoryTable | None = None
        self.landing: list[Item] = []  # of a transaction that was decided

    def answer(self, request: Request, /) -> Any:
        self.asked.append(request)
        if self.down:
            raise Unavailable("this Region does not answer")
        match request:
            case Get() | GetMany() | Query() if self.lagging is not None and not request.consistent:
                return self.lagging.answer(request)
        return super().answer(request)

    def now(self) -> Instant:
        self.asked.append(Now())
        return Instant(self.now_ms, self.steady_ms)

    def run(self, program: Program[Result]) -> Result:
        """Drive a program here; `asked` holds every request, the time too."""
        return run(program, self, self.now)

    def put(self, *deltas: Delta) -> None:
        self.store(items.delta_item(each) for each in deltas)

    def store(self, stored: Iterable[Item]) -> None:
        for item in stored:
            super().answer(Put(item))

    def alter(self, key: Key, **attributes: Any) -> None:
        """Give the item of this key other attributes, past every check."""
        self.store([{**self.items[key], **attributes}])

    def drop(self, *keys: Key) -> None:
        super().answer(DeleteMany(tuple(map(keyed, keys))))

    def lag(self) -> None:
        """From now on, eventually consistent reads see the table as it is at this moment."""
        self.lagging = MemoryTable(page_size=self.page_size, lists=False)
        for item in self.items.values():
            self.lagging.answer(Put(item))

    def copy_to(self, other: Region, *keys: Key) -> None:
        """Replicate some items (none named: all of them) to another Region, deletes only where named."""
        for key in keys or tuple(self.items):
            item = self.items.get(key)
            other.drop(key) if item is None else other.store([item])

    def decide(self, transaction: Transact, checkpoint_first: bool) -> Any:
        """The answer to a transaction of puts; if it is None, the items are on their way."""
        ahead = MemoryTable(lists=False)
        for item in (*self.items.values(), *self.landing):
            ahead.answer(Put(item))
        refused = ahead.answer(transaction)
        puts = [write for write in transaction.writes if isinstance(write, Put)]
        if refused is None:
            self.landing += [put.item for put in (puts if checkpoint_first else puts[::-1])]
        return refused


class Slow(Region):
    """Its answers take so long, by the wall clock: all of them, or those to requests of some kinds."""

    def __init__(self, answer_ms: int, *kinds: type, **given: Any) -> None:
        super().__init__(**given)
        self.answer_ms, self.kinds = answer_ms, kinds or (object,)

    def answer(self, request: Request, /) -> Any:
        self.now_ms += self.answer_ms if isinstance(request, self.kinds) else 0
        return super().answer(request)


def two_regions(**given: Any) -> tuple[Region, Region]:
    home, away = Region(**given), Region(**given)
    home.peers, away.peers = {A: home, B: away}, {A: home, B: away}
    return home, away


@contextmanager
def refused(table: Region, error: type[Exception], match: str | None = None) -> Iterator[pytest.ExceptionInfo[Any]]:
    """What is done inside raises this, and changes nothing in the table."""
    before = dict(table.items)
    with pytest.raises(error, match=match) as raised:
        yield raised
    assert table.items == before


def reader(table: Region, ttl: float = 5.0, *, consistent: bool = True, **changed: Any) -> Reader:
    return Reader(settings(**changed), ttl, consistent=consistent, table=table, clock=lambda: table.now_ms)


def compactor(home: Region, away: Region, **changed: Any) -> Compactor:
    return Compactor(settings(**changed), clock=lambda: home.now_ms, tables={A: home, B: away})


def value(table: Region, region: str = A) -> set[int]:
    """The deltas that a read in this Region sums; their number and their sum must agree."""
    balance = reader(table, region=region).read(COUNTER)
    held = summed(balance.value)
    assert balance.count == len(held)
    return held


def compact_for_long(home: Region, away: Region, visits: int = 1) -> Report:
    """A fresh compactor's visits, `keep` apart, with everything replicated; every transaction has landed before."""
    home.store(home.landing)
    home.landing, home.lagging, reports = [], None, []
    for _ in range(visits):
        away.copy_to(home, *(key for key in away.items if key.pk.startswith("delta#")))
        reports.append(compactor(home, away).compact(COUNTER))
        home.copy_to(away)
        home.now_ms += KEEP_MS
    return Report.total(reports)


Process = Generator[object, None, Result]


def steps(
    program: Program[Result], table: Region, *, checkpoint_first: bool = True, time_goes: bool = False
) -> Process[Result]:
    """A program that stops before each request; a transaction lands, and deletes happen, one item at a time.

    Where `time_goes` in the same test, it stops before it asks for the time too.
    It yields what it was told since its last stop: a program that was told the same is in the same state.
    """
    told: list[object] = []

    def step(request: Request) -> Process[Any]:
        if time_goes or not isinstance(request, Now):
            yield hash(repr(told))
            told.clear()
        try:
            told.append((yield from _item_by_item(request, table, checkpoint_first)))
        except LedgerError as failure:
            told.append(failure)
            raise
        return told[-1]

    return through(program, step)


def _item_by_item(request: Request, table: Region, checkpoint_first: bool) -> Process[Any]:
    match request:
        case Now():
            return table.now()
        case Transact():
            decided = table.decide(request, checkpoint_first)
            while table.landing:
                table.store([table.landing.pop(0)])
                yield "landed"
            return decided
        case DeleteMany(deleted):
            answers: list[Any] = []
            for item in deleted:
                answers += table.answer(DeleteMany((item,)))
                yield "deleted"
            return tuple(answers)
        case _:
            return table.answer(request)


Scene = tuple[Sequence[Region], Sequence[Iterator[object]], Callable[[], None]]


def every_order(make: Callable[[], Scene]) -> int:
    """Take the steps of some processes in every order, and `check` the world in every state that can be reached.

    make() returns Regions, processes, and a check, which may wreck its world: every order starts from a new one. That
    processes stop for ever is such a state too, so a check that compacts and reads is a test of every crash.
    Returns the number of states.
    """
    seen: set[object] = set()
    orders: list[tuple[int, ...]] = [()]
    while orders:
        order = orders.pop()
        regions, processes, check = make()
        told: list[tuple[object, ...]] = [() for _ in processes]
        try:
            for i in order:
                told[i] += (next(processes[i], StopIteration),)
            world = tuple(_state(region) for region in regions)
            state = (world, tuple(told))
            if state not in seen:
                orders += [(*order, i) for i, answers in enumerate(told) if StopIteration not in answers]
            if not seen.issuperset((world, state)):
                check()
            seen |= {world, state}
        except Exception as failure:
            failure.add_note(f"in the order {order}; asked: {[region.asked for region in regions]}")
            raise
    return len(seen)


def _state(region: Region) -> object:
    return region.now_ms, repr(region.landing), tuple(sorted((key, repr(item)) for key, item in region.items.items()))
