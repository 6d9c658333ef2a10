"""What calls say that they cost, beside what the meter counted for each on an engine that tells it.

Within 1 % is the promise; here they are equal, requests and attempts too.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compactor import Compactor, Report
from lab.engines.ministack import Engine
from lab.meters.charge import Charge
from lab.meters.telling import TellingMeter
from ledger import Change, Cost, Ledger, Limit, Observed, Settings
from ledger.actions import Set
from ledger.conditions import Absent, Equals
from ledger.cost import Meter
from ledger.dynamo import consumed
from ledger.dynamo.client import CONFIG
from ledger.errors import LedgerError, LimitReached, TokenConflict
from ledger.requests import Delete, DeleteMany, Key, Put, Request, Transact, Update
from ledger.table import DynamoTable
from reader import Reader
from tests.support import A, B

AT = datetime(2026, 1, 1, tzinfo=UTC)
LIKES, STOCK, SEATS = "likes:1", "stock:1", "seats:1"
HOUR = timedelta(hours=1)
Calls = Callable[["World"], object]


class World:
    """Two Regions' tables on the engine, the classes on them, and what they were observed to cost."""

    def __init__(self, engine: Engine, table: str, regions: tuple[str, ...] = (A, B)) -> None:
        self.meter = TellingMeter()
        self.clients = {region: engine.client(region, CONFIG) for region in (A, B)}
        for region, client in self.clients.items():
            engine.create_table(table, region)
            self.meter.attach(client)
        limits = {"stock:": Limit(floor=0), "seats:": Limit(ceiling=5, region=A)}
        self.settings = Settings(table=table, region=A, regions=regions, limits=limits, fold_min=1)
        self.now_ms = int(AT.timestamp() * 1_000)
        self.seen: list[Observed] = []
        self.ledger = self.make(Ledger)
        self.away = self.make(Ledger, region=regions[-1])
        self.table = DynamoTable.of(self.settings, self.clients)
        given: Any = {"table": self.table, "clock": self.clock, "observe": self.seen.append}
        self.reader, self.eventual = Reader(self.settings, **given), Reader(self.settings, consistent=False, **given)
        self.compactor = self.make(Compactor)

    def make(self, cls: Any, region: str = A, insert_only: bool = False, **more: Any) -> Any:
        given = {field: getattr(self.settings, field) for field in ("table", "regions", "limits", "fold_min")}
        settings = Settings(region=region, insert_only=insert_only, **given)
        return cls(settings, clients=self.clients, clock=self.clock, observe=self.seen.append, **more)

    def clock(self) -> int:
        return self.now_ms

    def changes(self, count: int, counter: str = LIKES, of: str = "k") -> list[Change]:
        return [Change(counter, 1, f"{of}{n}", AT) for n in range(count)]

    def compact(self) -> Any:
        """After whatever came is old enough."""
        self.now_ms += self.settings.keep_ms + self.settings.allowed_lateness_ms + 1
        return self.compactor.compact(LIKES)


def key(name: str) -> dict[str, Any]:
    return {"idempotency_key": name, "at": AT}


def failing(call: Callable[[], object], error: type[LedgerError]) -> Any:
    with pytest.raises(error) as raised:
        call()
    return raised.value.cost


def hold(world: World, name: str) -> Any:
    return world.ledger.hold(SEATS, 1, expires=HOUR, **key(name))


SCRIPT: dict[str, Calls] = {
    "the first add, and the shape": lambda w: w.ledger.add(LIKES, 1, **key("a")),
    "an add": lambda w: w.ledger.add(LIKES, 1, **key("b")),
    "a replay": lambda w: w.ledger.add(LIKES, 1, **key("b")),
    "a conflict": lambda w: failing(lambda: w.ledger.add(LIKES, 2, **key("b")), TokenConflict),
    "an insert": lambda w: w.make(Ledger, insert_only=True).add(LIKES, 1, **key("c")),
    "an insert again": lambda w: w.make(Ledger, insert_only=True).add(LIKES, 1, **key("c")),
    "many": lambda w: w.ledger.add_many(w.changes(60)),
    "many again": lambda w: w.ledger.add_many(w.changes(30)),
    "packs": lambda w: w.ledger.add_many(w.changes(500, of="p"), pack=True),
    "packs inserted": lambda w: w.make(Ledger, insert_only=True).add_many(w.changes(100, of="i"), pack=True),
    "packs inserted again": lambda w: w.make(Ledger, insert_only=True).add_many(w.changes(100, of="i"), pack=True),
    "a cold read": lambda w: w.reader.read(LIKES),
    "an eventual read": lambda w: w.eventual.read(LIKES),
    "a history of a tail": lambda w: list(w.reader.history(LIKES)),
    "a verify of a tail": lambda w: w.compactor.verify(LIKES),
    "a compact": World.compact,
    "a compact that postpones its clean": World.compact,
    "a run": lambda w: w.compactor.run(),
    "a folded read": lambda w: w.reader.read(LIKES),
    "a read behind": lambda w: w.reader.read(LIKES, behind=10_000),
    "a read for the cache": lambda w: w.reader.value("likes:2"),
    "a read of the cache": lambda w: w.reader.value("likes:2"),
    "values": lambda w: w.reader.values([f"likes:{n}" for n in range(150)]),
    "a history": lambda w: list(w.reader.history(LIKES)),
    "a page of it": lambda w: w.reader.history_page(LIKES, limit=20),
    "a page of names": lambda w: w.reader.counters(),
    "a verify": lambda w: w.compactor.verify(LIKES),
    "a rebuild": lambda w: w.compactor.rebuild(LIKES),
    "a limited add": lambda w: w.ledger.add(STOCK, 10, **key("s")),
    "a limited replay": lambda w: w.ledger.add(STOCK, 10, **key("s")),
    "a limited add elsewhere": lambda w: w.away.add(STOCK, -3, **key("t")),
    "a refusal": lambda w: failing(lambda: w.ledger.add(STOCK, -11, **key("u")), LimitReached),
    "the same refused again": lambda w: failing(lambda: w.ledger.add(STOCK, -11, **key("u")), LimitReached),
    "many limited and not": lambda w: w.ledger.add_many([*w.changes(60, STOCK), *w.changes(3, "likes:2")]),
    "a lane that files": lambda w: [w.ledger.add_many(w.changes(40, STOCK, of=f"{n}.")) for n in range(4)],
    "a hold": lambda w: hold(w, "h"),
    "a capture": lambda w: w.ledger.capture(hold(w, "h")),
    "a release": lambda w: hold(w, "i").release(),
    "another limit": lambda w: w.ledger.set_limit(SEATS, ceiling=6),
    "holds": lambda w: w.reader.holds(SEATS),
    "standing": lambda w: w.reader.standing(STOCK),
    "a limited read": lambda w: w.reader.read(STOCK),
    "a limited history": lambda w: w.reader.history_page(STOCK),
    "a limited verify": lambda w: w.compactor.verify(STOCK),
}


def said(cost: Cost) -> tuple[float, float, float, float]:
    return cost.requests, cost.attempts, cost.read_units, cost.write_units


def counted(spent: Charge) -> tuple[float, float, float, float]:
    return spent.requests, spent.requests, spent.read_units, spent.write_units


def wrong(world: World, script: dict[str, Calls]) -> dict[str, tuple[Any, Any]]:
    """The calls whose cost is not what the meter counted, with both."""
    found = {}
    for name, call in script.items():
        before = world.meter.total()
        world.seen.clear()
        call(world)
        cost = sum((each.cost for each in world.seen), start=Cost())
        expected = counted(world.meter.total() - before)
        if said(cost) != pytest.approx(expected) or cost.untold or not world.seen:
            found[name] = said(cost), expected
    return found


def test_every_kind_of_call_says_what_the_meter_counted(engine: Engine, table_names: Iterator[str]) -> None:
    assert wrong(World(engine, next(table_names)), SCRIPT) == {}


def test_so_do_visits_that_clean(engine: Engine, table_names: Iterator[str]) -> None:
    world = World(engine, next(table_names), regions=(A,))
    reports: list[Report] = []
    visits = {str(n): lambda w: reports.append(w.compact()) for n in range(3)}
    assert wrong(world, {"many": SCRIPT["many"], "packs": SCRIPT["packs"]} | visits) == {}
    assert Report.total(reports).cleaned == 560


def item(sk: str, size: int = 0, **more: Any) -> dict[str, Any]:
    return {"pk": {"S": "p"}, "sk": {"S": sk}, "x": {"S": "x" * size}, **more}


REQUESTS: list[tuple[Request, tuple[float, float]]] = [
    (Put(item("a", 3_000)), (0, 3)),
    (Put(item("a", 10), Absent()), (0, 3)),
    (Put(item("a", 5_000), Absent()), (0, 5)),
    (Delete(Key("p", "a"), Equals("x", {"S": "y"})), (0, 3)),
    (Update(Key("p", "a"), (Set("y", {"S": "y"}),), Equals("x", {"S": "y"})), (0, 3)),
    (Update(Key("p", "a"), (Set("y", {"S": "y"}),), shows=True), (0, 3)),
    (Transact((Put(item("a", 10), Absent()), Put(item("b", 1_500)))), (0, 2 * (3 + 2))),
    (Transact((Put(item("c")), Put(item("d", 1_500))), "token"), (0, 2 * (1 + 2))),
    (Transact((Put(item("c")), Put(item("d", 1_500))), "token"), (2 + 2, 0)),
    (DeleteMany((item("c"), item("d"), item("e"))), (0, 1 + 2 + 1)),
]
"""With the read and write units that each costs."""


def test_so_do_requests_that_are_refused_and_transactions_that_come_again(
    engine: Engine, table_names: Iterator[str]
) -> None:
    world = World(engine, next(table_names))
    for request, units in REQUESTS:
        before = world.meter.total()
        with Meter() as meter:
            world.table.answer(request)
        cost = meter.take()
        assert said(cost) == counted(world.meter.total() - before), request
        assert (cost.read_units, cost.write_units, cost.untold) == (*units, 0), request


def test_threads_that_gather_share_what_their_packs_cost(engine: Engine, table_names: Iterator[str]) -> None:
    world = World(engine, next(table_names))
    ledger, before = world.make(Ledger, gather=True), world.meter.total()
    with ThreadPoolExecutor(16) as threads:
        receipts = [*threads.map(lambda n: ledger.add(LIKES, 1, **key(str(n))), range(200))]
    spent = counted(world.meter.total() - before)
    assert said(sum((each.cost for each in receipts), start=Cost())) == pytest.approx(spent)
    assert said(sum((each.cost for each in world.seen), start=Cost())) == pytest.approx(spent)
    assert spent[0] < 200


def test_a_request_that_does_not_ask_is_seen(
    engine: Engine, table_names: Iterator[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumed, "ASK", {})
    script = {name: SCRIPT[name] for name in ("an add", "many", "a cold read", "a compact")}
    assert wrong(World(engine, next(table_names)), script).keys() == script.keys()
