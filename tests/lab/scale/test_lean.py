"""The lean table answers and charges as the others do."""

from random import Random
from typing import Any

import pytest

from lab.meters.charge import Charge
from lab.meters.metered_table import MeteredTable
from lab.scale.lean import LOOK, LeanTable, Partition
from ledger.conditions import Absent, Equals
from ledger.memory import MemoryTable
from ledger.requests import (
    At,
    Delete,
    DeleteMany,
    Get,
    GetMany,
    Item,
    Key,
    Page,
    Put,
    PutMany,
    Query,
    Request,
    Scan,
    Together,
    Transact,
    keyed,
)

PARTITIONS = ("delta#a", "fold#a", "lane#a")


def some_item(drawn: Random) -> Item:
    key = Key(drawn.choice(PARTITIONS), f"{drawn.randrange(12):02}")
    attributes = [
        {},
        {"change": {"N": str(drawn.randrange(-99, 99))}},
        {"entries": {"B": bytes(drawn.randrange(5_000))}},
    ]
    return keyed(key, **drawn.choice(attributes))  # type: ignore[arg-type]


def some_request(drawn: Random) -> Request:
    item, other = some_item(drawn), some_item(drawn)
    key, consistent = Key(item["pk"]["S"], item["sk"]["S"]), drawn.random() < 0.5
    many = tuple({i["sk"]["S"]: i for i in (item, *(some_item(drawn) for _ in range(4)))}.values())
    conditions = (None, Absent(), Equals("change", {"N": "1"}))
    twice = Key(other["pk"]["S"], other["sk"]["S"]) == key
    requests: list[Request] = [
        Get(key, consistent),
        GetMany((key, Key("lane#a", "00")), consistent),
        Query(key.pk, None, None, drawn.choice((None, 1, 3)), consistent),
        Query(key.pk, "03", drawn.choice((None, "07")), drawn.choice((None, 2)), consistent),
        Put(item, drawn.choice(conditions)),
        PutMany(many),
        DeleteMany(many),
        Delete(key, drawn.choice(conditions[:2])),
        Transact((Put(item, drawn.choice(conditions)), *(() if twice else (Put(other, Absent()),)))),
        Together((Get(key), Query(key.pk, None, None, 2, False))),
    ]
    return drawn.choice(requests)


@pytest.mark.parametrize("seed", range(10))
def test_it_answers_as_the_table_in_memory_and_charges_as_the_meter(seed: int) -> None:
    drawn, lean, memory, metered = Random(seed), LeanTable(), MemoryTable(), MeteredTable()
    metered.is_charged = True
    for _ in range(300):
        request = some_request(drawn)
        answer = lean.answer(request)
        assert answer == memory.answer(request)
        assert answer == metered.answer(request)
    assert sum(lean.costs.values(), start=Charge()) == metered.cost


def test_what_stood_there_before_is_answered_and_what_comes_is_beside_it() -> None:
    before = Partition(["a", "c"], ["1", {"total": {"N": "5"}}])
    lean = LeanTable({"fold#x": before}.get)
    lean.put("fold#x", "b", "7")
    assert lean.answer(Get(Key("fold#x", "c"))) == keyed(Key("fold#x", "c"), total={"N": "5"})
    assert lean.answer(Query("fold#x", limit=2)) == Page(
        tuple(keyed(Key("fold#x", sk), change={"N": n}) for sk, n in (("a", "1"), ("b", "7"))), "b"
    )
    lean.answer(Delete(Key("fold#x", "a")))
    assert (before.keys, lean.partition("fold#x").keys) == (["a", "c"], ["b", "c"])
    assert lean.answer(Get(Key("fold#y", "c"))) is None


def test_a_page_ends_at_a_megabyte_and_a_range_of_nothing_is_not_asked_for() -> None:
    lean = LeanTable()
    lean.answer(PutMany(tuple(keyed(Key("p", str(n)), entries={"B": bytes(300_000)}) for n in range(5))))
    page = lean.answer(Query("p"))
    assert (len(page.items), page.last) == (4, "3")
    before = lean.costs
    assert lean.answer(Query("p", "2", "1")) == Page((), None)
    assert lean.costs == before


def test_costs_are_told_by_who_pays_and_for_what() -> None:
    lean = LeanTable()
    lean.payer = "compact"
    for request in (
        Get(Key("fold#x", "checkpoint"), False),
        Query("delta#x", None, None, 32, False),
        Get(Key("p", "s")),
    ):
        lean.answer(At("us-east-1", request))
    assert lean.costs == {
        ("compact", LOOK, "GetItem"): Charge(1, 0.5),
        ("compact", LOOK, "Query"): Charge(1, 0.5),
        ("compact", "p", "GetItem"): Charge(1, 1.0),
    }


def test_what_nobody_here_asks_for_is_an_error() -> None:
    unknown: Any = Scan()
    with pytest.raises(TypeError, match="Scan"):
        LeanTable().answer(unknown)
