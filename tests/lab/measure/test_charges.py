"""What each request costs a table in memory."""

from lab.measure.metered_table import Charge, MeteredTable
from ledger.core.actions import Add
from ledger.core.conditions import Absent
from ledger.core.requests import (
    Delete,
    DeleteMany,
    Get,
    GetMany,
    Item,
    Key,
    Pause,
    Put,
    PutMany,
    Query,
    Request,
    Scan,
    Together,
    Transact,
    Update,
)

KEY, OTHER, NEW = (Key("p", sk) for sk in ("s", "t", "new"))  # the first two: 6 bytes


def item(size: int, key: Key = KEY) -> Item:
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}, "b": {"B": bytes(size - 7)}}


def fresh(size: int, key: Key = KEY) -> Put:
    return Put(item(size, key), Absent())


TWO = (item(3000), item(1500, OTHER))
WRITES: list[tuple[str, Request, int]] = [
    # what it is, on a table that has TWO; write units
    ("a put costs the larger item", Put(item(100)), 3),
    ("whichever it is", Put(item(5000)), 5),
    ("where a condition failed, too", fresh(100), 3),
    ("and costs the larger item", fresh(5000), 5),
    ("an update costs the whole item", Update(KEY, (Add("n", 1),)), 3),
    ("of what is not there, the least", Update(NEW, (Add("n", 1),)), 1),
    ("an update that is refused", Update(KEY, (Add("n", 1),), Absent()), 3),
    ("a delete", Delete(OTHER), 2),
    ("of what is not there", Delete(NEW), 1),
    ("twice in a transaction", Transact((Put(item(1500, NEW)), Delete(OTHER))), 8),
    ("also where it is cancelled", Transact((fresh(100), Put(item(1500, NEW)))), 10),
    ("statement by statement, of which one is taken", PutMany((item(100), item(1500, NEW))), 5),
    ("deletes of what is so, is gone, is not so", DeleteMany((TWO[1], item(9, NEW), item(9))), 6),
]  # fmt: skip
READS: list[tuple[str, Request, float]] = [
    ("an absent item costs the least", Get(NEW, consistent=False), 0.5),
    ("and twice that when strong", Get(NEW), 1),
    ("item by item", GetMany((KEY, OTHER, NEW)), 3),
    ("once a page", Query("p"), 2),
    ("an empty page", Query("q", consistent=False), 0.5),
    ("each for itself", Together((Get(KEY), Query("p"))), 3),
    ("the table's own work", Scan(), 0),
    ("no request", Pause(1), 0),
]


def test_what_a_request_costs_a_table_in_memory() -> None:
    for what, request, units in WRITES:
        assert charged(request) == Charge(1, 0, units), what
    for what, request, read in READS:
        assert charged(request) == Charge(2 if "itself" in what else read > 0, read), what
    assert charged(PutMany(tuple(item(9, Key("p", str(n))) for n in range(26)))).requests == 2


def charged(request: Request) -> Charge:
    table = MeteredTable()
    for there in TWO:
        table.answer(Put(there))
    before = table.cost
    table.answer(request)
    return table.cost - before
