"""The table's shape: who may write it, and that no process with other settings adds, reads or
compacts.

A table that is missing, or is not ours, is told as that.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError

from compactor import Compactor
from lab.engines.ministack import Engine
from ledger import Change, Ledger, Settings
from ledger.client.writer import add_deltas
from ledger.core import items
from ledger.core.errors import (
    DamagedItem,
    LedgerError,
    SettingsMismatch,
    TableMismatch,
    TableMissing,
    Throttled,
    TransactionConflict,
    Unavailable,
)
from ledger.core.keep import Keep
from ledger.core.limit import Limit, Shape
from ledger.core.ranges import SHARD_MAX, VERSION_MAX
from ledger.core.requests import Get, Put, PutMany, Table
from ledger.lane.shape import check, write
from ledger.tables.dynamo import DynamoTable
from ledger.tables.memory import MemoryTable
from reader import Reader
from tests.ledger.test_table_errors import Script
from tests.world import LATER_MS, A, B, Region, create_table, fail, outcomes_of, refused

THIRD = "ap-south-1"
ASKED = Get(items.SHAPE_KEY)


def settings(region: str = A, regions: tuple[str, ...] = (A, B), **shards: int) -> Settings:
    return Settings(table="counters", region=region, regions=regions, shards=shards, fold_min=1)


OURS = settings(stock=4, seats=8)
GROWN = settings(THIRD, (A, B, THIRD), stock=4, seats=8)


def compactor(ours: Settings, table: Table) -> Compactor:
    return Compactor(ours, tables=dict.fromkeys(ours.regions, table))


CALLS: dict[str, Callable[[Settings, Table], Any]] = {
    "add": lambda ours, table: Ledger(ours, table=table).add("stock", 1),
    "read": lambda ours, table: Reader(ours, table=table).read("stock"),
    "value": lambda ours, table: Reader(ours, table=table).value("stock"),
    "values": lambda ours, table: Reader(ours, table=table).values(["stock"]),
    "history": lambda ours, table: Reader(ours, table=table).history("stock"),
    "history_page": lambda ours, table: Reader(ours, table=table).history_page("stock"),
    "compact": lambda ours, table: compactor(ours, table).compact("stock"),
    "run": lambda ours, table: compactor(ours, table).run(),
    "verify": lambda ours, table: compactor(ours, table).verify("stock"),
    "rebuild": lambda ours, table: compactor(ours, table).rebuild("stock"),
}
NEVER = [  # what no process may have, nor any later shape
    (settings(stock=1, seats=8), "shards="),
    (settings(), "shards="),
    (settings(stock=4, seats=8, carts=2), "shards="),
    (settings(regions=(A,), stock=4, seats=8), "regions="),
]


def table_of(ours: Settings = OURS) -> Region:
    table = Region()
    table.run(write(ours))
    table.asked.clear()
    return table


def shape_in(table: Region) -> Shape:
    return items.shape_of(table.items[items.SHAPE_KEY])


# -- what a process may have


def test_other_settings_neither_add_nor_read() -> None:
    for wrong, says in (*NEVER, (GROWN, "region='ap-south-1'")):
        with refused(table := table_of(), SettingsMismatch, says):
            CALLS["add"](wrong, table)
        assert table.asked == [ASKED]
    for call in CALLS.values():
        with refused(table, SettingsMismatch):
            call(wrong, table)
        call(wrong, Region())
        for right in (
            OURS,
            settings(B, (B, A), seats=8, stock=4),
            settings(A, (A, B, THIRD), stock=4, seats=8),
        ):
            call(right, table_of())


def test_a_mismatch_says_both_values_and_what_to_do() -> None:
    table = table_of()
    with pytest.raises(SettingsMismatch) as caught:
        Ledger(settings(stock=2), table=table).add("stock", 1)
    for said in ("shards={'seats': 8, 'stock': 4}", "shards={'stock': 2}", "LEDGER_SHARDS"):
        assert said in str(caught.value)
    assert str(caught.value).endswith("Nothing was written.")
    assert caught.value.delta is not None
    asked = [Change("stock", 1), Change("stock", cast(Any, 0.5)), Change("seats", 2)]
    outcomes = Ledger(settings(), table=table).add_many(asked)
    assert outcomes_of(outcomes) == ["SettingsMismatch", "InvalidChange", "SettingsMismatch"]
    assert [each.delta and each.delta.change for each in outcomes] == [1, None, 2]
    assert table.asked == [ASKED] * 2


PASTED = re.compile(r"(LEDGER_[A-Z]+)='([^']*)'")


def test_a_mismatch_has_the_tables_rules_ready_to_paste() -> None:
    keep = Keep(late=timedelta(days=1), keep=timedelta(days=9))
    theirs = Settings(
        table="counters",
        region=A,
        shards={"stock": 4},
        limits={"seats:": Limit(ceiling=9, region=A), "it's:": Limit(floor=0)},
        periods={"seats:": keep, "week:": keep},
    )
    ours = replace(
        theirs,
        shards={},
        limits={"own:": Limit(floor=0), "seats:": Limit(ceiling=8, region=A)},
        periods={"seats:": replace(keep, keep=timedelta(days=8), carry=3)},
    )
    table = table_of(theirs)
    with pytest.raises(SettingsMismatch) as caught:
        table.run(check(ours))
    text = str(caught.value)
    for once in ("bypass the limit", "the table deletes", "set_limit changes"):
        assert text.count(once) == 1
    pasted = Settings.from_env(dict(PASTED.findall(text)), table="counters", region=A)
    assert (pasted.shards, pasted.limits) == (theirs.shards, {**ours.limits, **theirs.limits})
    assert pasted.periods == {"seats:": replace(keep, carry=3), "week:": keep}
    table.run(check(pasted))


# -- asked once


def test_each_asks_once_and_every_later_add_is_one_put() -> None:
    for table, first in ((Region(), [Get, Put, Get]), (table_of(), [Get])):
        ledger, reader, cleaner = (
            Ledger(OURS, table=table),
            Reader(OURS, table=table),
            compactor(OURS, table),
        )
        for _ in range(3):
            ledger.add("stock", 1)
        ledger.add_many([Change("stock", 1)])
        assert table.kinds == [*first, Put, Put, Put, PutMany, Put]
        assert table.asked[0] == ASKED
        assert ASKED.consistent
        asked = table.asked.count(ASKED)
        for _ in range(2):
            reader.read("stock")
            cleaner.compact("stock")
            cleaner.verify("stock")
        assert table.asked.count(ASKED) == asked + 2


DOORS: dict[str, Callable[[Settings, Any], object]] = {
    "add": lambda made, table: Ledger(made, table=table).add("stock", 1),
    "apply": lambda made, table: (ledger := Ledger(made, table=table)).apply(
        ledger.prepare("stock", 1)
    ),
    "gather": lambda made, table: Ledger(made, table=table, gather=True).add("stock", 1),
    "add_many": lambda made, table: only(Ledger(made, table=table).add_many([Change("stock", 1)])),
    "add_many in packs": lambda made, table: only(
        Ledger(made, table=table).add_many([Change("stock", 1)], pack=True)
    ),
    "import": lambda made, table: only(
        add_deltas(ledger := Ledger(made, table=table), [ledger.prepare("stock", 1)])
    ),
    "transfer": lambda made, table: Ledger(made, table=table).transfer(
        "stock", "c", 1, idempotency_key="k", at=datetime(2026, 11, 28, tzinfo=UTC)
    ),
}


def only(outcomes: Sequence[object]) -> object:
    (outcome,) = outcomes
    if isinstance(outcome, LedgerError):
        raise outcome
    return outcome


@pytest.mark.parametrize("name", DOORS)
def test_the_first_use_of_shards_keeps_a_shape(name: str) -> None:
    """With 4 shards and then 8 a retry would be in another lane, and count twice; a read would
    leave changes out.
    """
    table = MemoryTable()
    DOORS[name](settings(A, stock=4), table)
    shape = table.answer(ASKED)
    assert shape is not None
    assert items.shape_of(shape) == Shape((A, B), {"stock": 4})
    before = dict(table.items)
    for other in (settings(A, stock=8), settings(A), settings(A, stock=4, seats=2)):
        for door in DOORS.values():
            with pytest.raises(SettingsMismatch, match="Nothing was written"):
                door(other, table)
        for read in (Reader(other, table=table).value, compactor(other, table).compact):
            with pytest.raises(SettingsMismatch):
                read("stock")
    assert table.items == before
    DOORS[name](settings(A, stock=4), table)


def test_a_shape_that_cannot_be_read_is_asked_for_again() -> None:
    for failure in (Unavailable("no answer"), Throttled("slower")):
        table = table_of().after(lambda request: request == ASKED, fail(failure), times=1)
        ledger = Ledger(OURS, table=table)
        with refused(table, type(failure)) as caught:
            ledger.add("stock", 1)
        delta = cast(LedgerError, caught.value).delta
        assert [ledger.apply(cast(Any, delta)).outcome for _ in range(2)] == [
            "recorded",
            "replayed",
        ]
        assert table.asked.count(ASKED) == 2
    ledger = Ledger(GROWN, table=table)
    with pytest.raises(SettingsMismatch):
        ledger.add("stock", 1)
    table.run(write(GROWN))
    assert ledger.add("stock", 1).outcome == "recorded"


def test_who_gets_no_shape_adds_as_before() -> None:
    denied = ClientError(
        {"Error": {"Code": "AccessDeniedException", "Message": "not authorized"}}, "GetItem"
    )
    for failure, called in (
        # a role that may not read it does not ask again
        (denied, ["get_item", "put_item", "put_item"]),
        # missing for a moment; then the first use of shards finds no shape, and writes it
        (
            NoCredentialsError(),
            ["get_item", "put_item", "get_item", "put_item", "get_item", "put_item"],
        ),
    ):
        client = Script([failure, *[{}] * (len(called) - 1)])
        ledger = Ledger(OURS, client=cast(Any, client))
        assert [ledger.add("stock", 1).outcome for _ in range(2)] == ["recorded"] * 2
        assert [name for name, _ in client.calls] == called
    lost = Script([ConnectTimeoutError(endpoint_url="https://nowhere")])
    with pytest.raises(
        Unavailable, match=r"^get_item got no answer .* Nothing was written\. Call again later\.$"
    ):
        Ledger(OURS, client=cast(Any, lost)).add("stock", 1)


# -- the item, and who writes it

DAYS: Any = {name: {"N": "60"} for name in ("late_s", "keep_s")} | {"prefix": {"S": "day:"}}
STOCK: Any = {"M": {"prefix": {"S": "stock"}, "shards": {"N": "4"}}}


def test_a_shape_is_written_once() -> None:
    table = Region()
    assert [table.run(write(OURS)) for _ in range(2)] == ["written", "kept"]
    assert shape_in(table) == Shape((A, B), {"stock": 4, "seats": 8}, 1)
    assert table.items[items.SHAPE_KEY] == items.shape_item(Shape((A, B), {"stock": 4, "seats": 8}))
    largest = Shape((A,), {"": 1, "hot:": SHARD_MAX}, VERSION_MAX)
    assert items.shape_of(items.shape_item(largest)) == largest
    for_all = Settings(table="counters", region=A, shards={"": 2})
    assert table_of(for_all).run(check(for_all)) == Shape((A,), {"": 2})


DAMAGE: list[dict[str, Any]] = [
    *(
        {"regions": {"L": [{"S": region} for region in regions]}}
        for regions in ([], [A, A], ["Europe"])
    ),
    *({"regions": regions} for regions in ({"L": [{"N": "1"}]}, {"SS": [A]}, None)),
    {"sk": {"S": "form"}},
    *(
        {"shards": {"L": shards}}
        for shards in ([{"S": "stock"}], [{"M": {"prefix": {"S": "stock"}}}], [STOCK] * 2)
    ),
    {"shards": {"L": [{"M": {"prefix": {"S": "stock"}, "shards": {"N": "0"}}}]}},
    *({"version": {"N": "0"}}, {"version": {"S": "1"}}),
    *(
        {"periods": {"L": [{"M": DAYS | {"keep_s": {"N": seconds}}}]}}
        for seconds in ("59", "1.5", "9" * 15)
    ),
]


def test_a_damaged_shape_is_told_and_never_guessed_at() -> None:
    for damage in DAMAGE:
        table = table_of()
        damaged = {**table.items[items.SHAPE_KEY], **damage}
        table.items[items.SHAPE_KEY] = {
            name: value for name, value in damaged.items() if value is not None
        }
        with refused(table, DamagedItem, f"pk='shape', sk={damaged['sk']['S']!r}"):
            Ledger(OURS, table=table).add("stock", 1)
        with refused(table, DamagedItem):
            table.run(write(OURS))


def test_a_shape_grows_by_regions_at_its_end_alone() -> None:
    table = table_of()
    table.alter(items.SHAPE_KEY, more={"S": "of a later version"})
    assert table.run(write(settings(THIRD, (THIRD, A, B), stock=4, seats=8))) == "grown"
    assert shape_in(table) == Shape((A, B, THIRD), {"stock": 4, "seats": 8}, 2)
    assert table.items[items.SHAPE_KEY]["more"] == {"S": "of a later version"}
    for wrong, says in NEVER:
        with refused(table := table_of(), SettingsMismatch, says):
            table.run(write(wrong))


def test_of_two_writers_one_wins_and_the_other_looks_again() -> None:
    table = Region()
    table.before(Put, lambda _: table.run(write(settings(stock=2))), times=1)
    with pytest.raises(SettingsMismatch, match="'stock': 2"):
        table.run(write(OURS))
    assert shape_in(table) == Shape((A, B), {"stock": 2})
    grows = table_of(settings(regions=(A,)))
    grows.before(Put, lambda _: grows.run(write(settings(regions=(A, THIRD)))), times=1)
    assert grows.run(write(settings(regions=(A, B, THIRD)))) == "grown"
    assert shape_in(grows).regions == (A, THIRD, B)
    busy = Region().after(Put, lambda *_: {})
    busy.before(Get, lambda _: busy.drop(items.SHAPE_KEY))
    with pytest.raises(TransactionConflict, match="Nothing was written"):
        busy.run(write(OURS))


# -- multi-Region strong consistency

SEATS = {"seats": Limit(ceiling=9, region=A)}
LIMITED = replace(OURS, limits=SEATS)
AT: Any = {"idempotency_key": "k", "at": datetime(2010, 12, 1, tzinfo=UTC)}
ADDS: list[Callable[[Ledger], Any]] = [
    lambda ledger: ledger.add("stock", 1),
    lambda ledger: ledger.transfer("seats", "stock", 1, **AT),
    lambda ledger: ledger.transfer("stock", "seats", 1, **AT),
]


def test_a_strong_table_refuses_a_counter_without_a_limit() -> None:
    table = Region()
    table.peers = {B: table}
    table.run(write(LIMITED, is_strong=True))
    table.asked.clear()
    for gather in (False, True):
        ledger = Ledger(LIMITED, table=table, gather=gather)
        for add in ADDS * 2:
            with refused(
                table, SettingsMismatch, "'stock' has no limit, and the table multi-Reg"
            ) as caught:
                add(ledger)
            assert "Nothing was written. Only counters with a limit" in str(caught.value)
        outcomes = outcomes_of(ledger.add_many([Change("stock", 1), Change("seats", 1)] * 2))
        assert outcomes == ["SettingsMismatch", "recorded"] * 2
    assert table.asked.count(ASKED) == 2
    assert Reader(LIMITED, table=table).read("stock").value == 0


def test_a_strong_table_refuses_periods_and_its_mode_stays_noted() -> None:
    table, hour = Region(), timedelta(hours=1)
    table.peers = {B: table}
    assert table.run(write(LIMITED, is_strong=True)) == "written"
    daily = replace(
        LIMITED,
        limits=SEATS | {"day:": Limit(floor=0)},
        periods={"day:": Keep(late=hour, keep=hour)},
    )
    assert table.run(write(daily)) == "grown"
    ledger = Ledger(daily, table=table, clock=lambda: LATER_MS)
    with refused(
        table, SettingsMismatch, "'day:a@2023-11' has a period, and the table multi-Region strong"
    ):
        ledger.add("day:a@2023-11", 1)
    steps = [table.run(write(daily, strong)) for strong in (None, True, False, None)]
    assert steps == ["kept", "kept", "grown", "kept"]
    assert table.items[items.SHAPE_KEY]["consistency"] == {"S": "EVENTUAL"}
    assert Ledger(daily, table=table).add("stock", 1).outcome == "recorded"


# -- a table that is not ours

# the keys of a table, and an item of it
THEIRS: list[tuple[dict[str, str], dict[str, Any], type[LedgerError]]] = [
    ({}, {}, TableMissing),
    ({"id": "S"}, {"id": {"S": "a"}}, TableMismatch),
    ({"pk": "S"}, {"pk": {"S": "a"}}, TableMismatch),
    ({"pk": "S", "range": "S"}, {"pk": {"S": "a"}, "range": {"S": "a"}}, TableMismatch),
    ({"pk": "N", "sk": "S"}, {"pk": {"N": "1"}, "sk": {"S": "a"}}, TableMismatch),
]


@pytest.fixture(scope="module")
def client(engine: Engine) -> Iterator[Any]:
    with closing(engine.client(A)) as made:
        yield made


def test_a_missing_table_is_not_told_as_a_mismatch(client: Any, table_names: Iterator[str]) -> None:
    for keys, theirs, error in THEIRS:
        ours = Settings(table=next(table_names), region=A)
        table = DynamoTable.of(ours, {A: client})
        if keys:
            create_table(client, ours.table, **keys)
        for name, call in CALLS.items():
            if name != "run" or not keys:  # of an empty table it says nothing
                with pytest.raises(error, match=ours.table):
                    call(ours, table)
        outcomes = Ledger(ours, table=table).add_many([Change("c", 1), Change("d", 1)])
        assert [type(each) for each in outcomes] == [error] * 2
        if keys:
            client.put_item(TableName=ours.table, Item=theirs)
            with pytest.raises(TableMismatch):
                CALLS["run"](ours, table)
            assert client.scan(TableName=ours.table)["Items"] == [theirs]
