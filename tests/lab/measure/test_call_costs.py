"""What calls say that they cost is what the meter counted for each on an engine, requests and attempts too."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compactor import Compactor
from lab.engines.ministack import Engine
from lab.measure.charge import Charge
from lab.measure.meter import ReportingMeter
from ledger import Change, Cost, Ledger, Limit, Observed, Settings
from ledger.dynamo import consumed
from ledger.dynamo.client import CONFIG
from ledger.errors import LedgerError, LimitReached, TokenConflict
from ledger.table import DynamoTable
from reader import Reader
from tests.world import A, B

AT, HOUR = datetime(2026, 1, 1, tzinfo=UTC), timedelta(hours=1)
LIKES, STOCK, SEATS = "likes:1", "stock:1", "seats:1"
LIMITS = {"stock:": Limit(floor=0), "seats:": Limit(ceiling=5, region=A)}


class Metered:
    """Tables on the engine, the classes on them, and what they were observed to cost."""

    def __init__(self, engine: Engine, table: str, regions: tuple[str, ...] = (A, B)) -> None:
        self.meter, self.seen = ReportingMeter(), list[Observed]()
        self.clients = {region: engine.client(region, CONFIG) for region in regions}
        for region, client in self.clients.items():
            engine.create_table(table, region)
            self.meter.attach(client)
        self.settings: dict[str, Any] = {"table": table, "regions": regions, "limits": LIMITS, "fold_min": 1}
        self.now_ms = int(AT.timestamp() * 1_000)
        self.table = DynamoTable.of(Settings(region=A, **self.settings), self.clients)
        self.ledger, self.away = self.make(Ledger), self.make(Ledger, region=regions[-1])
        self.inserts = self.make(Ledger, insert_only=True)
        given: Any = {"table": self.table, "clock": lambda: self.now_ms, "observe": self.seen.append}
        self.reader, self.eventual = (Reader(Settings(region=A, **self.settings), consistent=strong, **given)
                                      for strong in (True, False))  # fmt: skip
        self.compactor = self.make(Compactor)

    def make(self, cls: Any, region: str = A, insert_only: bool = False, **more: Any) -> Any:
        settings = Settings(region=region, insert_only=insert_only, **self.settings)
        return cls(settings, clients=self.clients, clock=lambda: self.now_ms, observe=self.seen.append, **more)

    def compact(self) -> Any:
        """After whatever came is old enough."""
        self.now_ms += 620_000
        return self.compactor.compact(LIKES)


def many(count: int, counter: str = LIKES, of: str = "k") -> list[Change]:
    return [Change(counter, 1, f"{of}{n}", AT) for n in range(count)]


def key(name: str) -> dict[str, Any]:
    return {"idempotency_key": name, "at": AT}


def failing(call: Callable[[], object], error: type[LedgerError]) -> None:
    with pytest.raises(error):
        call()


SCRIPT: dict[str, Callable[[Metered], object]] = {
    "the first add, and the shape": lambda m: m.ledger.add(LIKES, 1, **key("a")),
    "an add": lambda m: m.ledger.add(LIKES, 1, **key("b")),
    "a replay": lambda m: m.ledger.add(LIKES, 1, **key("b")),
    "a conflict": lambda m: failing(lambda: m.ledger.add(LIKES, 2, **key("b")), TokenConflict),
    "inserts": lambda m: [m.inserts.add(LIKES, 1, **key("c")) for _ in range(2)],
    "many": lambda m: m.ledger.add_many(many(60)),
    "many again": lambda m: m.ledger.add_many(many(30)),
    "packs": lambda m: m.ledger.add_many(many(500, of="p"), pack=True),
    "packs inserted": lambda m: [m.inserts.add_many(many(100, of="i"), pack=True) for _ in range(2)],
    "a cold read": lambda m: m.reader.read(LIKES),
    "an eventual read": lambda m: m.eventual.read(LIKES),
    "a history of a tail": lambda m: list(m.reader.history(LIKES)),
    "a verify of a tail": lambda m: m.compactor.verify(LIKES),
    "a compact": Metered.compact,
    "a compact that cleans, or postpones it": Metered.compact,
    "another": Metered.compact,
    "a run": lambda m: m.compactor.run(),
    "a folded read": lambda m: m.reader.read(LIKES),
    "a read behind": lambda m: m.reader.read(LIKES, behind=10_000),
    "reads for the cache and of it": lambda m: [m.reader.value("likes:2") for _ in range(2)],
    "values": lambda m: m.reader.values([f"likes:{n}" for n in range(150)]),
    "a history": lambda m: [list(m.reader.history(LIKES)), m.reader.history_page(LIKES, limit=20)],
    "a page of names": lambda m: m.reader.counters(),
    "a verify": lambda m: m.compactor.verify(LIKES),
    "a rebuild": lambda m: m.compactor.rebuild(LIKES),
    "a limited add and its replay": lambda m: [m.ledger.add(STOCK, 10, **key("s")) for _ in range(2)],
    "a limited add elsewhere": lambda m: m.away.add(STOCK, -3, **key("t")),
    "a refusal": lambda m: failing(lambda: m.ledger.add(STOCK, -11, **key("u")), LimitReached),
    "many limited and not": lambda m: m.ledger.add_many([*many(60, STOCK), *many(3, "likes:2")]),
    "a lane that files": lambda m: [m.ledger.add_many(many(40, STOCK, of=f"{n}.")) for n in range(4)],
    "a hold": lambda m: m.ledger.hold(SEATS, 1, expires=HOUR, **key("h")),
    "a capture": lambda m: m.ledger.capture(m.ledger.hold(SEATS, 1, expires=HOUR, **key("h"))),
    "a release": lambda m: m.ledger.hold(SEATS, 1, expires=HOUR, **key("i")).release(),
    "another limit": lambda m: m.ledger.set_limit(SEATS, ceiling=6),
    "holds and standing": lambda m: [m.reader.holds(SEATS), m.reader.standing(STOCK)],
    "a limited read": lambda m: [m.reader.read(STOCK), m.reader.history_page(STOCK)],
    "a limited verify": lambda m: m.compactor.verify(STOCK),
}


def numbers(cost: Any) -> tuple[float, ...]:
    attempts = cost.requests if isinstance(cost, Charge) else cost.attempts
    return cost.requests, attempts, cost.read_units, cost.write_units


def wrong(metered: Metered, names: Any = SCRIPT) -> dict[str, tuple[Any, Any]]:
    """The calls whose cost is not what the meter counted, with both."""
    found = {}
    for name in names:
        before = metered.meter.total()
        metered.seen.clear()
        SCRIPT[name](metered)
        cost = sum((each.cost for each in metered.seen), start=Cost())
        counted = numbers(metered.meter.total() - before)
        if numbers(cost) != pytest.approx(counted) or cost.untold or not metered.seen:
            found[name] = numbers(cost), counted
    return found


def test_every_kind_of_call_says_what_the_meter_counted(engine: Engine, table_names: Iterator[str]) -> None:
    for regions in ((A, B), (A,)):  # in one, a clean deletes
        assert wrong(Metered(engine, next(table_names), regions)) == {}


def test_a_request_that_does_not_ask_is_seen(engine: Engine, table_names: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(consumed, "ASK", {})
    names = ("an add", "many", "a cold read", "a compact")
    assert wrong(Metered(engine, next(table_names)), names).keys() == {*names}
