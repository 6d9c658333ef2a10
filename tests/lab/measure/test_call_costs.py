"""What calls say that they cost is what the answers of an engine said for each, requests and attempts too."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from compactor import Compactor
from lab.engines.ministack import Engine
from ledger import Change, Cost, Ledger, Limit, Observed, Settings
from ledger.cost import item_bytes, write_units
from ledger.dynamo.client import CONFIG
from ledger.errors import LimitReached, TokenConflict
from ledger.table import DynamoTable
from reader import Reader
from tests.world import A, B

AT, LONG = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=9)
LIKES, STOCK, SEATS = "likes:1", "stock:1", "seats:1"
LIMITS = {"stock:": Limit(floor=0), "seats:": Limit(ceiling=5, region=A)}


LISTS = ("BatchExecuteStatement", "BatchGetItem", "TransactWriteItems")
READS = ("GetItem", "BatchGetItem", "Query", "Scan")


class Bill:
    """What the answers of clients say of their cost, each another amount; the engine says something else. A refused
    condition says nothing: it costs the larger of the item that is there and the one that was asked for."""

    def __init__(self) -> None:
        self.cost, self._amounts = Cost(), count(0.5, 0.5)

    def of(self, client: Any) -> None:
        client.meta.events.register("before-parameter-build.dynamodb", self._asked)
        client.meta.events.register("response-received.dynamodb", self._answered)

    def _asked(self, params: Any, context: Any, **_: Any) -> None:
        context["asked"] = params

    def _answered(self, event_name: str, context: Any, parsed_response: Any, **_: Any) -> None:
        operation, asked, amount = event_name.rpartition(".")[2], context["asked"], next(self._amounts)
        if code := parsed_response.get("Error", {}).get("Code"):
            assert code in ("ConditionalCheckFailedException", "TransactionCanceledException")
            self.cost += Cost(1, 1, 0, refused(asked, parsed_response))
            return
        self.cost += Cost(1, 1, amount) if operation in READS else Cost(1, 1, 0, amount)
        said = {"CapacityUnits": amount}
        parsed_response.pop("ConsumedCapacity", None)
        if asked.get("ReturnConsumedCapacity") == "TOTAL":
            parsed_response["ConsumedCapacity"] = [said] if operation in LISTS else said


def refused(asked: Any, answer: Any) -> int:
    actions = [action for each in asked.get("TransactItems", ()) for action in each.values()]
    reasons = answer.get("CancellationReasons", [answer])
    sizes = [
        max(item_bytes(each.get("Item", {})) for each in both) for both in zip(actions or [asked], reasons, strict=True)
    ]
    return sum(write_units(size, transactional=bool(actions)) for size in sizes)


def many(changes: int, counter: str = LIKES, of: str = "k") -> list[Change]:
    return [Change(counter, 1, f"{of}{n}", AT) for n in range(changes)]


def key(name: str) -> dict[str, Any]:
    return {"idempotency_key": name, "at": AT}


Call = Callable[[Any, Any, Any], object]
SCRIPT: dict[str, Call] = {  # of a ledger, a reader and a compactor
    "the first add, and the shape": lambda own, *_: own.add(LIKES, 1, **key("a")),
    "an add": lambda own, *_: own.add(LIKES, 1, **key("b")),
    "a replay": lambda own, *_: own.add(LIKES, 1, **key("b")),
    "a conflict": lambda own, *_: own.add(LIKES, 2, **key("b")),
    "many": lambda own, *_: own.add_many(many(60)),
    "many again": lambda own, *_: own.add_many(many(30)),
    "packs": lambda own, *_: own.add_many(many(500, of="p"), pack=True),
    "a cold read": lambda _, reads, __: reads.read(LIKES),
    "a compact": lambda *of: of[2].compact(LIKES),
    "a compact that cleans, or postpones it": lambda *of: of[2].compact(LIKES),
    "values": lambda _, reads, __: reads.values([f"likes:{n}" for n in range(150)]),
    "a history": lambda _, reads, __: [list(reads.history(LIKES)), reads.history_page(LIKES, limit=20)],
    "a page of names": lambda _, reads, __: reads.counters(),
    "a verify": lambda *of: of[2].verify(LIKES),
    "a rebuild": lambda *of: of[2].rebuild(LIKES),
    "a limited add and its replay": lambda own, *_: [own.add(STOCK, 10, **key("s")) for _ in range(2)],
    "a refusal": lambda own, *_: own.add(STOCK, -11, **key("u")),
    "many limited and not": lambda own, *_: own.add_many([*many(60, STOCK), *many(3, "likes:2")]),
    "a lane that files": lambda own, *_: [own.add_many(many(40, STOCK, of=f"{n}.")) for n in range(4)],
    "a capture": lambda own, *_: own.capture(own.hold(SEATS, 1, expires=LONG, **key("h"))),
    "another limit": lambda own, *_: own.set_limit(SEATS, ceiling=6),
    "holds and standing": lambda _, reads, __: [reads.holds(SEATS), reads.standing(STOCK), reads.read(STOCK)],
    "a limited verify": lambda *of: of[2].verify(STOCK),
}


REFUSED = {"a conflict": (TokenConflict,), "a refusal": (LimitReached,)}


def test_every_kind_of_call_says_what_its_answers_said(engine: Engine, table_names: Iterator[str]) -> None:
    for regions in ((A, B), (A,)):  # in one, a clean deletes
        bill, seen, table = Bill(), list[Observed](), next(table_names)
        clients = {region: engine.client(region, CONFIG) for region in regions}
        for region, client in clients.items():
            engine.create_table(table, region)
            bill.of(client)
        settings = Settings(table=table, region=A, regions=regions, limits=LIMITS, fold_min=1, clean_units_per_s=10**9)
        now_ms = int(AT.timestamp() * 1_000)
        given: Any = {"clock": lambda: now_ms, "observe": seen.append}  # noqa: B023
        of = (
            Ledger(settings, clients=clients, **given),
            Reader(settings, table=DynamoTable.of(settings, clients), **given),
        )
        compactor = Compactor(settings, clients=clients, **given)
        for name, call in SCRIPT.items():
            bill.cost = Cost()
            seen.clear()
            now_ms += 620_000  # whatever came is old enough
            with suppress(*REFUSED.get(name, ())):
                call(*of, compactor)
            assert sum((each.cost for each in seen), start=Cost()) == bill.cost, name
            assert seen, name
