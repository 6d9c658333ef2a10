"""The one world of the tests: Regions in memory with a clock, in which things go wrong where a test
says so.

    world = World(limits={"seats:": Limit(ceiling=10, region=A)})
    world.home.before(Transact, lambda _: world.add("seats:gig", 1, B)) # something happens between
    two requests
    world.away.down = True                                                # Unavailable from here on
    assert world.home.kinds == [Get, Query, Transact]                     # what it was asked

Rule 1: Nothing replicates but what a test copies (`copy_to`, `replicate`).
Rule 2: Delta n is asked for at second n and changes its counter by 4**n, so a sum says which deltas
it holds, and a wrong sum which of them is missing or doubled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from inspect import isawaitable
from itertools import count, repeat
from typing import Any, NamedTuple, Self, cast

import pytest
from botocore.exceptions import ClientError

from compactor import Compactor
from lab.histories.judges.checker import deltas_in
from ledger import Ledger, Receipt
from ledger.client.aio import AsyncLedger
from ledger.core import clocks, items, tokens
from ledger.core.checks import to_datetime
from ledger.core.days import Bucket, Days
from ledger.core.errors import Unavailable
from ledger.core.requests import (
    At,
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
    Together,
    Transact,
    Update,
    key_of,
    keyed,
)
from ledger.core.running import run
from ledger.core.settings import Settings
from ledger.core.values import Delta, Lane
from ledger.gate.gates import Gates
from ledger.lane.shape import write
from ledger.tables.dynamo import ByRegion
from ledger.tables.memory import MemoryTable
from reader import Reader

A, B = "eu-west-1", "us-east-1"
COUNTER = "stock:85123A"
LANE = Lane(A, 0, COUNTER)
NOW_MS, LATENESS_MS, READ_MS, KEEP_MS = 1_000_000, 10_000, 60_000, 600_000
LATER_MS = 1_700_000_000_000  # a time at which keys of today are taken


def settings(region: str = A, **changed: Any) -> Settings:
    """Settings of both Regions under which a single delta is folded."""
    return Settings(
        **{"table": "counters", "region": region, "regions": (A, B), "fold_min": 1, **changed}
    )


def token(n: int, at_ms: int | None = None) -> str:
    return tokens.make(
        n * 1_000 if at_ms is None else at_ms, n.to_bytes(tokens.RANDOM_BYTES, "big")
    )


def delta(n: int, lane: Lane = LANE, at_ms: int | None = None) -> Delta:
    return Delta(lane, token(n, at_ms), 4**n)


def in_one_day(number: int, total: int) -> Days:
    """The days of a checkpoint whose changes are all of the first day."""
    return Days((Bucket(0, number, total),))


def summed(value: int) -> set[int]:
    """The deltas that a sum holds; fails unless it is the sum of a real set."""
    held = deltas_in(value)
    assert held is not None, (
        f"{value} is no sum of a set: a delta is doubled, or one above it is missing"
    )
    return {*held}


class Hook(NamedTuple):
    """What happens at requests of a kind: a type, several, or a test of the request."""

    kind: type | tuple[type, ...] | Callable[[Any], bool]
    do: Callable[..., Any]
    left: Iterator[object]  # one for each time it still happens

    def takes(self, request: Request) -> bool:
        kind = self.kind
        matches = isinstance(request, kind) if isinstance(kind, type | tuple) else kind(request)
        return matches and next(self.left, None) is not None


def fail(error: BaseException) -> Callable[..., Any]:
    """For `before` and `after`: no answer but this error."""

    def raises(*_: object) -> None:
        raise error

    return raises


def _in_short(request: Any) -> str:
    keys: Iterable[Key] = ()
    match request:
        case Together(requests):
            return f"together: {', '.join(map(_in_short, requests))}"
        case At(region, away):
            return f"{_in_short(away)} in {region}"
        case Query(pk, after):
            keys = (Key(pk, after or ""),)
        case GetMany():
            keys = request.keys
        case DeleteMany(deleted):
            keys = map(key_of, deleted)
        case Transact(writes):
            keys = (write.key for write in writes)
        case Get() | Put():
            keys = (request.key,)
    of = (
        sk.partition("#")[0] if pk.startswith("fold#") else pk.partition("#")[0] for pk, sk in keys
    )
    limit, consistent = getattr(request, "limit", None), getattr(request, "consistent", False)
    how = {True: ["strongly"], False: []}[consistent]
    return " ".join([type(request).__name__.lower(), *of, *([str(limit)] if limit else []), *how])


class Region(MemoryTable):
    """A Region's replica and clock. It keeps what it was `asked`, the time too, and is Unavailable
    while it is `down`.

    before, after: what happens at its requests. lag: what eventually consistent reads see from then
    on.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"lists": False, **given})
        self.asked: list[Request] = []
        self.now_ms = self.steady_ms = NOW_MS
        self.down = False
        self.lagging: MemoryTable | None = None
        self._before: list[Hook] = []
        self._after: list[Hook] = []

    @property
    def kinds(self) -> list[type]:
        """The kinds of the requests it was asked, without those for the time."""
        return [type(request) for request in self.asked if not isinstance(request, Now)]

    @property
    def in_short(self) -> list[str]:
        """What it was asked, in short: "query delta 1 strongly" is a strong Query of deltas with
        the limit 1.
        """
        return list(map(_in_short, self.asked))

    def before(self, kind: Any, do: Callable[[Any], Any], times: int | None = None) -> Self:
        """Call do(request) before requests of a kind are answered, each time or so many times. What
        it raises is all that is answered.
        """
        self._before.append(Hook(kind, do, repeat(True) if times is None else repeat(True, times)))
        return self

    def after(self, kind: Any, do: Callable[[Any, Any], Any], times: int | None = None) -> Self:
        """Answer do(request, answer) instead of what is answered, or raise what it raises: the
        request was applied.
        """
        self._after.append(Hook(kind, do, repeat(True) if times is None else repeat(True, times)))
        return self

    def takes(self, answer_ms: int, *kinds: type) -> Self:
        """Answers take so long by the wall clock: all, or those to requests of some kinds."""

        def wait(_: Request) -> None:
            self.now_ms += answer_ms

        return self.before(kinds or (object,), wait)

    def answer(self, request: Request, /) -> Any:
        self.asked.append(request)
        if self.down:
            raise Unavailable("this Region does not answer")
        for hook in [*self._before]:
            if hook.takes(request):
                hook.do(request)
        match request:
            case Get() | GetMany() | Query() if self.lagging is not None and not request.consistent:
                answer = self.lagging.answer(request)
            case _:
                answer = super().answer(request)
        for hook in [*self._after]:
            if hook.takes(request):
                answer = hook.do(request, answer)
        return answer

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

    def forget_days(self, lane: Lane = LANE, **attributes: Any) -> None:
        """The lane's checkpoint is as an earlier version left it, with these attributes."""
        key = items.checkpoint_key(lane)
        self.store(
            [
                {name: value for name, value in self.items[key].items() if name != "days"}
                | attributes
            ]
        )

    def drop(self, *keys: Key) -> None:
        super().answer(DeleteMany(tuple(map(keyed, keys))))

    def lag(self) -> None:
        """From now on, eventually consistent reads see the table as it is at this moment."""
        self.lagging = MemoryTable(page_size=self.page_size, lists=False)
        for item in self.items.values():
            self.lagging.answer(Put(item))

    def copy_to(self, other: Region, *keys: Key) -> None:
        """Replicate some items (none named: all of them) to another Region, deletes only where
        named.
        """
        for key in keys or tuple(self.items):
            item = self.items.get(key)
            other.drop(key) if item is None else other.store([item])


def two_regions(**given: Any) -> tuple[Region, Region]:
    """Two Regions with a clock each."""
    home, away = Region(**given), Region(**given)
    home.peers = away.peers = {A: home, B: away}
    return home, away


def folded(
    *numbers: int, later: Iterable[int] = (), fold_max: int = 1, page_size: int = 1_000
) -> tuple[Region, Region]:
    """Two Regions: at home these deltas were folded, so many by a commit, and others came later.

    Nobody noted any.
    """
    home, away = two_regions(page_size=page_size)
    home.put(*map(delta, numbers))
    compactor(home, away, fold_max=fold_max, clean=False).compact(COUNTER)
    home.put(*map(delta, later))
    home.asked.clear()
    return home, away


class Awaited:
    """An AsyncLedger or an AsyncReader, for tests that do not await: it is entered for each
    call.
    """

    def __init__(self, made: Any) -> None:
        self._made = made

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **named: Any) -> Any:
            async with self._made:
                answer = getattr(self._made, name)(*args, **named)
                return await answer if isawaitable(answer) else answer

        return lambda *args, **named: asyncio.run(call(*args, **named))


class World:
    """Regions with one clock, and a Ledger, a Reader and a Compactor in each; each add has a key of
    its own.

    awaits: the Ledger is an AsyncLedger. changed: settings that are not as usual.
    """

    awaits = False
    entropy = staticmethod(clocks.entropy)

    def __init__(
        self, regions: Sequence[str] = (A, B), *, now_ms: int = LATER_MS, **changed: Any
    ) -> None:
        self.regions = {region: Region() for region in regions}
        for table in self.regions.values():
            table.peers = self.regions
        self.changed = changed
        self.now_ms = now_ms
        self._keys = count(1)

    def __getitem__(self, region: str) -> Region:
        return self.regions[region]

    @property
    def home(self) -> Region:
        return self[A]

    @property
    def away(self) -> Region:
        return self[B]

    @property
    def now_ms(self) -> int:
        return next(iter(self.regions.values())).now_ms

    @now_ms.setter
    def now_ms(self, now_ms: int) -> None:
        for table in self.regions.values():
            table.now_ms = table.steady_ms = now_ms

    def clock(self) -> int:
        return self.now_ms

    def settings(self, region: str = A, **changed: Any) -> Settings:
        return settings(region, **{"regions": tuple(self.regions), **self.changed, **changed})

    def ledger(self, region: str = A, *, gather: bool = False, **changed: Any) -> Ledger:
        made = self.settings(region, **changed)
        given: Any = {"tables": self.regions, "clock": self.clock, "entropy": self.entropy}
        if self.awaits:
            return cast(Ledger, Awaited(AsyncLedger(made, **given)))
        ledger = Ledger(made, gather=gather, **given)
        # so a slow machine forgets nothing
        ledger._rules.now = lambda: Instant(self.now_ms, self.now_ms)
        return ledger

    def reader(self, region: str = A, ttl: float = 0, **changed: Any) -> Reader:
        table = ByRegion(region, self.regions)
        return Reader(self.settings(region, **changed), ttl, table=table, clock=self.clock)

    def compactor(self, region: str = A, **changed: Any) -> Compactor:
        return Compactor(self.settings(region, **changed), tables=self.regions, clock=self.clock)

    def key(self) -> dict[str, Any]:
        """A key that no change had, and its time, ten milliseconds after the one before."""
        self.now_ms += 10
        return {"idempotency_key": str(next(self._keys)), "at": to_datetime(self.now_ms)}

    def add(self, counter: str, change: int, region: str = A, **given: Any) -> Receipt:
        return self.ledger(region).add(counter, change, **{**self.key(), **given})

    def value(self, counter: str = COUNTER, region: str = A) -> int:
        return self.reader(region).read(counter).value

    def gates(self, counter: str, region: str = A) -> Gates:
        """The gates of a limited counter, as a process of that Region reaches them."""
        return Gates.limited(self.settings(region), counter, "a test")

    def shape(self, **changed: Any) -> None:
        """What an operator did: the table has the shape of these settings, in each Region."""
        for region, table in self.regions.items():
            table.run(write(self.settings(region, **changed)))

    def replicate(self) -> None:
        """The items of each Region's own lanes reach the others; deletes do not."""
        for region, home in self.regions.items():
            own = [key for key in home.items if f"#{region}#" in key.pk]
            for other in self.regions.values() if own else ():  # of none named, all would be copied
                home.copy_to(other, *own)


def without_statements(client: Any) -> Any:
    """A client of moto, which reads no PartiQL parameters: to its user, as to a narrow role,
    single writes remain.
    """
    refusal = {"Error": {"Code": "AccessDeniedException", "Message": "no PartiQL"}}
    refuse = fail(ClientError(refusal, "BatchExecuteStatement"))  # type: ignore[arg-type]
    client.meta.events.register("before-call.dynamodb.BatchExecuteStatement", lambda **_: refuse())
    return client


def create_table(client: Any, name: str, **keys: str) -> None:
    """With these keys, the partition key first, each with its type."""
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[
            {"AttributeName": key, "KeyType": kind}
            for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)
        ],
        AttributeDefinitions=[
            {"AttributeName": key, "AttributeType": kind} for key, kind in keys.items()
        ],
    )


def outcomes_of(results: Iterable[Any]) -> list[str]:
    """The outcome of each change of an `add_many`, or its error's name."""
    return [each.outcome if isinstance(each, Receipt) else type(each).__name__ for each in results]


@contextmanager
def refused(
    table: Region, error: type[Exception], match: str | None = None
) -> Iterator[pytest.ExceptionInfo[Any]]:
    """What is done inside raises this, and changes nothing in the table."""
    before = dict(table.items)
    with pytest.raises(error, match=match) as raised:
        yield raised
    assert table.items == before


def reader(table: Region, ttl: float = 5.0, *, consistent: bool = True, **changed: Any) -> Reader:
    return Reader(
        settings(**changed), ttl, consistent=consistent, table=table, clock=lambda: table.now_ms
    )


def compactor(home: Region, away: Region, **changed: Any) -> Compactor:
    return Compactor(settings(**changed), clock=lambda: home.now_ms, tables={A: home, B: away})


def value(table: Region, region: str = A) -> set[int]:
    """The deltas that a read in this Region sums; their number and their sum must agree."""
    balance = reader(table, region=region).read(COUNTER)
    held = summed(balance.value)
    assert balance.count == len(held)
    return held


def writes_of(counter: str) -> Callable[[Any], bool]:
    """For `before` and `after`: whether a request writes this counter's gate, or tries to."""
    return lambda request: isinstance(request, Update) and request.key.pk.endswith(counter)


def compact_for_long(home: Region, away: Region) -> None:
    """Three visits of a fresh compactor, `keep` apart, with everything replicated."""
    for _ in range(3):
        away.copy_to(home, *(key for key in away.items if key.pk.startswith("delta#")))
        compactor(home, away).compact(COUNTER)
        home.copy_to(away)
        home.now_ms += KEEP_MS
