"""What calls say that they cost is what their answers said, whichever thread asked."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from compactor import Compactor
from ledger import Change, Cost, Ledger, Limit, Observed, Settings
from ledger.core.cost import here
from ledger.tables.dynamo import ByRegion
from reader import Reader
from tests.world import A, B, Region

AT, LONG = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=9)
LIKES, STOCK, SEATS = "likes:1", "stock:1", "seats:1"
LIMITS = {"stock:": Limit(floor=0), "seats:": Limit(ceiling=5, region=A)}


def many(changes: int, counter: str = LIKES, of: str = "k") -> list[Change]:
    return [Change(counter, 1, f"{of}{n}", AT) for n in range(changes)]


def key(name: str) -> dict[str, Any]:
    return {"idempotency_key": name, "at": AT}


Call = Callable[[Any, Any, Any], object]
SCRIPT: dict[str, Call] = {  # of a ledger, a reader and a compactor
    "the first add, and the shape": lambda own, *_: own.add(LIKES, 1, **key("a")),
    "an add": lambda own, *_: own.add(LIKES, 1, **key("b")),
    "many": lambda own, *_: own.add_many(many(60)),
    "packs": lambda own, *_: own.add_many(many(500, of="p"), pack=True),
    "a cold read": lambda _, reads, __: reads.read(LIKES),
    "a run": lambda *of: of[2].run(),
    "compacts": lambda *of: [of[2].compact(LIKES) for _ in range(3)],
    "values": lambda _, reads, __: reads.values([f"likes:{n}" for n in range(150)]),
    "a history": lambda _, reads, __: [
        list(reads.history(LIKES)),
        reads.history_page(LIKES, limit=20),
    ],
    "a page of names": lambda _, reads, __: reads.counters(),
    "a verify": lambda *of: of[2].verify(LIKES),
    "a rebuild": lambda *of: of[2].rebuild(LIKES),
    "a limited add, twice": lambda own, *_: [own.add(STOCK, 10, **key("s")) for _ in range(2)],
    "many limited and not": lambda own, *_: own.add_many([*many(60, STOCK), *many(3, "likes:2")]),
    "a lane that files": lambda own, *_: [
        own.add_many(many(40, STOCK, of=f"{n}.")) for n in range(4)
    ],
    "a capture": lambda own, *_: own.capture(own.hold(SEATS, 1, expires=LONG, **key("h"))),
    "another limit": lambda own, *_: own.set_limit(SEATS, ceiling=6),
    "holds and standing": lambda _, reads, __: [
        reads.holds(SEATS),
        reads.standing(STOCK),
        reads.read(STOCK),
    ],
    "a limited verify": lambda *of: of[2].verify(STOCK),
}


def test_every_kind_of_call_says_what_its_answers_said() -> None:
    for regions in ((A, B), (A,)):  # in one, a clean deletes
        # Each answer costs a request, in the call that asks.
        tables = {
            region: Region().before(object, lambda _: here().add(Cost(1))) for region in regions
        }
        seen = list[Observed]()
        settings = Settings(
            table="counters",
            region=A,
            regions=regions,
            limits=LIMITS,
            fold_min=1,
            clean_units_per_s=10**9,
        )
        now_ms = int(AT.timestamp() * 1_000)
        given: Any = {"clock": lambda: now_ms, "observe": seen.append}  # noqa: B023
        of = (
            Ledger(settings, tables=tables, **given),
            Reader(settings, table=ByRegion(A, tables), **given),
            Compactor(settings, tables=tables, **given),
        )
        for name, call in SCRIPT.items():
            before = sum(len(table.asked) for table in tables.values())
            seen.clear()
            now_ms += 620_000  # whatever came is old enough
            call(*of)
            asked = sum(len(table.asked) for table in tables.values()) - before
            assert sum((each.cost for each in seen), start=Cost()) == Cost(asked), name
            assert seen, name
