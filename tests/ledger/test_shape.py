"""The table's shape: who may write it, and that no process with other settings adds, reads or compacts."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError

from compactor import Compactor
from ledger import Change, Ledger, Settings, items
from ledger.clocks import instants, wall_clock
from ledger.errors import DamagedItem, LedgerError, SettingsMismatch, Throttled, TransactionConflict, Unavailable
from ledger.lane.shape import check, write
from ledger.limit import Shape
from ledger.memory import MemoryTable
from ledger.ranges import SHARD_MAX, VERSION_MAX
from ledger.requests import Get, Put, PutMany, Request, Table, run
from reader import Reader
from simulator import Simulation
from tests.world import Region, refused

HOME, ABROAD, THIRD = "eu-west-1", "us-east-1", "ap-south-1"
ASKED = Get(items.SHAPE_KEY)
NOW = instants(wall_clock)


def settings(region: str = HOME, regions: tuple[str, ...] = (HOME, ABROAD), **shards: int) -> Settings:
    return Settings(table="counters", region=region, regions=regions, shards=shards, fold_min=1)


OURS = settings(stock=4, seats=8)

CALLS: dict[str, Callable[[Settings, Table], Any]] = {
    "add": lambda ours, table: Ledger(ours, table=table).add("stock", 1),
    "read": lambda ours, table: Reader(ours, table=table).read("stock"),
    "value": lambda ours, table: Reader(ours, table=table).value("stock"),
    "values": lambda ours, table: Reader(ours, table=table).values(["stock"]),
    "history": lambda ours, table: Reader(ours, table=table).history("stock"),
    "history_page": lambda ours, table: Reader(ours, table=table).history_page("stock"),
    "compact": lambda ours, table: Compactor(ours, tables=dict.fromkeys(ours.regions, table)).compact("stock"),
    "run": lambda ours, table: Compactor(ours, tables=dict.fromkeys(ours.regions, table)).run(),
    "verify": lambda ours, table: Compactor(ours, tables=dict.fromkeys(ours.regions, table)).verify("stock"),
    "rebuild": lambda ours, table: Compactor(ours, tables=dict.fromkeys(ours.regions, table)).rebuild("stock"),
}
OTHERS = {
    "other shards": (settings(stock=1, seats=8), "shards="),
    "no shards": (settings(), "shards="),
    "more shards": (settings(stock=4, seats=8, carts=2), "shards="),
    "a Region less": (settings(regions=(HOME,), stock=4, seats=8), "regions="),
    "a Region of its own": (settings(THIRD, (HOME, ABROAD, THIRD), stock=4, seats=8), "region='ap-south-1'"),
}


class Told(Region):
    """Its first asks for the shape may fail."""

    failures: tuple[Exception, ...] = ()

    def answer(self, request: Request, /) -> Any:
        answer = super().answer(request)
        if request == ASKED and self.failures:
            failure, self.failures = self.failures[0], self.failures[1:]
            raise failure
        return answer


def table_of(ours: Settings = OURS, *failures: Exception) -> Told:
    table = Told()
    run(write(ours), table, NOW)
    table.asked.clear()
    table.failures = failures
    return table


def shape_in(table: MemoryTable) -> Shape:
    return items.shape_of(table.items[items.SHAPE_KEY])


# -- what a process may have -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("other", OTHERS)
def test_a_process_with_other_settings_neither_adds_nor_reads(call: str, other: str) -> None:
    table = table_of()
    wrong, says = OTHERS[other]
    with refused(table, SettingsMismatch, says):
        CALLS[call](wrong, table)
    assert table.asked == [ASKED]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "ours",
    [OURS, settings(ABROAD, (ABROAD, HOME), seats=8, stock=4), settings(HOME, (HOME, ABROAD, THIRD), stock=4, seats=8)],
    ids=["the same", "in another order", "with a Region that is being added"],
)
def test_a_process_with_the_settings_of_the_table_goes_on(call: str, ours: Settings) -> None:
    CALLS[call](ours, table_of())


def test_a_mismatch_says_both_values_and_what_to_do() -> None:
    with pytest.raises(SettingsMismatch) as caught:
        Ledger(settings(stock=2), table=table_of()).add("stock", 1)
    said = str(caught.value)
    assert "shards={'seats': 8, 'stock': 4}" in said
    assert "shards={'stock': 2}" in said
    assert "LEDGER_SHARDS" in said
    assert said.endswith("Nothing was written.")
    assert caught.value.delta is not None


def test_every_change_of_a_batch_is_told_of_a_mismatch_and_none_raises() -> None:
    table = table_of()
    outcomes = Ledger(settings(), table=table).add_many([Change("stock", 1), Change("stock", 0.5), Change("seats", 2)])  # type: ignore[arg-type]
    assert [type(outcome).__name__ for outcome in outcomes] == ["SettingsMismatch", "InvalidChange", "SettingsMismatch"]
    deltas = [cast(LedgerError, outcome).delta for outcome in outcomes]
    assert [delta and (delta.lane.counter, delta.change) for delta in deltas] == [("stock", 1), None, ("seats", 2)]
    assert table.asked == [ASKED]


def test_a_table_without_a_shape_takes_every_process() -> None:
    for ours, _ in OTHERS.values():
        for call in CALLS.values():
            call(ours, MemoryTable())


# -- asked once --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Told, table_of], ids=["without a shape", "with one"])
def test_each_asks_once_and_every_later_add_is_one_put(make: Callable[[], Told]) -> None:
    table = make()
    ledger, reader = Ledger(OURS, table=table), Reader(OURS, table=table)
    for _ in range(3):
        ledger.add("stock", 1)
    ledger.add_many([Change("stock", 1)])
    assert [type(request) for request in table.asked] == [Get, Put, Put, Put, PutMany, Put]
    assert table.asked[0] == ASKED
    assert ASKED.consistent
    compactor = Compactor(OURS, tables={HOME: table, ABROAD: table})
    for _ in range(2):
        reader.read("stock")
        compactor.compact("stock")
        compactor.verify("stock")
    assert table.asked.count(ASKED) == 3


@pytest.mark.parametrize("failure", [Unavailable("no answer"), Throttled("slower")], ids=str)
def test_a_failure_to_ask_is_raised_writes_nothing_and_is_asked_again(failure: LedgerError) -> None:
    table = table_of(OURS, failure)
    ledger = Ledger(OURS, table=table)
    with pytest.raises(type(failure)) as caught:
        ledger.add("stock", 1)
    delta = caught.value.delta
    assert delta is not None
    assert not [request for request in table.asked if isinstance(request, Put)]
    assert ledger.apply(delta).outcome == "recorded"
    assert ledger.apply(delta).outcome == "replayed"
    assert table.asked.count(ASKED) == 2


def test_a_process_that_was_refused_goes_on_when_the_shape_has_grown() -> None:
    table = table_of()
    grown = settings(THIRD, (HOME, ABROAD, THIRD), stock=4, seats=8)
    ledger = Ledger(grown, table=table)
    with pytest.raises(SettingsMismatch):
        ledger.add("stock", 1)
    run(write(grown), table, NOW)
    assert ledger.add("stock", 1).outcome == "recorded"


def test_threads_that_come_at_once_all_add_and_none_without_having_asked() -> None:
    table = table_of()
    wrong, right = Ledger(settings(stock=2), table=table), Ledger(OURS, table=table)

    def adds(each: Ledger) -> str:
        try:
            return each.add("stock", 1).outcome
        except SettingsMismatch:
            return "refused"

    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(adds, [wrong, right] * 8)) == ["refused", "recorded"] * 8


class Client:
    """A DynamoDB client whose role may put and nothing else, or has no credentials at first."""

    def __init__(self, *failures: Exception) -> None:
        self.failures, self.called = list(failures), list[str]()

    def get_item(self, **_: Any) -> Any:
        self.called.append("get_item")
        if self.failures:
            raise self.failures.pop(0)
        return {}

    def put_item(self, **_: Any) -> Any:
        self.called.append("put_item")
        return {}


DENIED = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "not authorized"}}, "GetItem")


@pytest.mark.parametrize(
    ("failure", "called"),
    [
        (DENIED, ["get_item", "put_item", "put_item", "put_item"]),
        (NoCredentialsError(), ["get_item", "put_item", "get_item", "put_item", "put_item"]),
    ],
    ids=["a role that may not read the shape does not ask again", "credentials that are missing for a moment"],
)
def test_who_gets_no_shape_adds_as_before(failure: Exception, called: list[str]) -> None:
    client = Client(failure)
    ledger = Ledger(OURS, client=cast(Any, client))
    for _ in range(3):
        assert ledger.add("stock", 1).outcome == "recorded"
    assert client.called == called


def test_an_add_whose_shape_got_no_answer_says_what_to_do() -> None:
    client = Client(ConnectTimeoutError(endpoint_url="https://nowhere"))
    with pytest.raises(Unavailable, match=r"^get_item got no answer .* Nothing was written\. Call again later\.$"):
        Ledger(OURS, client=cast(Any, client)).add("stock", 1)


# -- the item, and who writes it --------------------------------------------------------------------------------------


def test_a_shape_is_written_once_as_the_data_model_says() -> None:
    table = MemoryTable()
    assert run(write(OURS), table, NOW) == "written"
    assert run(write(OURS), table, NOW) == "kept"
    assert shape_in(table) == Shape((HOME, ABROAD), {"stock": 4, "seats": 8}, 1)
    assert table.items[items.SHAPE_KEY] == {
        "pk": {"S": "shape"},
        "sk": {"S": "shape"},
        "regions": {"L": [{"S": HOME}, {"S": ABROAD}]},
        "shards": {
            "L": [
                {"M": {"prefix": {"S": "seats"}, "shards": {"N": "8"}}},
                {"M": {"prefix": {"S": "stock"}, "shards": {"N": "4"}}},
            ]
        },
        "version": {"N": "1"},
    }
    largest = Shape((HOME,), {"": 1, "hot:": SHARD_MAX}, VERSION_MAX)
    assert items.shape_of(items.shape_item(largest)) == largest
    for_all = Settings(table="counters", region=HOME, shards={"": 2})
    assert run(check(for_all), table_of(for_all), NOW) == Shape((HOME,), {"": 2})


@pytest.mark.parametrize(
    "damage",
    [
        *({"regions": {"L": [{"S": region} for region in regions]}} for regions in ([], [HOME, HOME], ["Europe"])),
        *({"regions": regions} for regions in ({"L": [{"N": "1"}]}, {"SS": [HOME]}, None)),
        {"sk": {"S": "form"}},
        *({"shards": {"L": [shards]}} for shards in ({"S": "stock"}, {"M": {"prefix": {"S": "stock"}}})),
        {"shards": {"L": [{"M": {"prefix": {"S": "stock"}, "shards": {"N": "0"}}}]}},
        {"shards": {"L": [{"M": {"prefix": {"S": "stock"}, "shards": {"N": "4"}}}] * 2}},
        *({"version": {"N": "0"}}, {"version": {"S": "1"}}),
    ],
    ids=str,
)
def test_a_damaged_shape_is_told_and_never_guessed_at(damage: dict[str, Any]) -> None:
    table = table_of()
    damaged = {**table.items[items.SHAPE_KEY], **damage}
    table.items[items.SHAPE_KEY] = {name: value for name, value in damaged.items() if value is not None}
    with pytest.raises(DamagedItem, match=f"pk='shape', sk={damaged['sk']['S']!r}"):
        Ledger(OURS, table=table).add("stock", 1)
    with pytest.raises(DamagedItem):
        run(write(OURS), table, NOW)


def test_a_shape_grows_by_regions_at_its_end_and_keeps_what_else_the_item_holds() -> None:
    table = table_of()
    table.items[items.SHAPE_KEY] = {**table.items[items.SHAPE_KEY], "more": {"S": "of a later version"}}
    assert run(write(settings(THIRD, (THIRD, HOME, ABROAD), stock=4, seats=8)), table, NOW) == "grown"
    assert shape_in(table) == Shape((HOME, ABROAD, THIRD), {"stock": 4, "seats": 8}, 2)
    assert table.items[items.SHAPE_KEY]["more"] == {"S": "of a later version"}


@pytest.mark.parametrize("other", [name for name in OTHERS if name != "a Region of its own"])
def test_a_shape_never_loses_a_region_and_never_changes_shards(other: str) -> None:
    table = table_of()
    wrong, says = OTHERS[other]
    with refused(table, SettingsMismatch, says):
        run(write(wrong), table, NOW)


class Raced(MemoryTable):
    """Between a look at the shape and its put, somebody else writes: `others`, one at a time."""

    def __init__(self, *others: Settings) -> None:
        super().__init__()
        self.others = list(others)

    def answer(self, request: Request, /) -> Any:
        if isinstance(request, Put) and self.others:
            run(write(self.others.pop(0)), self, NOW)
        return super().answer(request)


def test_of_two_first_writers_one_wins_and_the_other_is_told() -> None:
    table = Raced(settings(stock=2))
    with pytest.raises(SettingsMismatch, match="'stock': 2"):
        run(write(OURS), table, NOW)
    assert shape_in(table) == Shape((HOME, ABROAD), {"stock": 2})


def test_two_regions_that_are_added_at_once_are_both_there() -> None:
    table = Raced()
    run(write(settings(regions=(HOME,))), table, NOW)
    table.others = [settings(regions=(HOME, THIRD))]
    assert run(write(settings(regions=(HOME, ABROAD, THIRD))), table, NOW) == "grown"
    assert shape_in(table).regions == (HOME, THIRD, ABROAD)


def test_a_shape_that_others_keep_writing_is_given_up() -> None:
    class Busy(Told):
        def answer(self, request: Request, /) -> Any:
            return {} if isinstance(request, Put) else super().answer(request)

    with pytest.raises(TransactionConflict, match="Nothing was written"):
        run(write(OURS), Busy(), NOW)


def test_a_shape_written_in_one_region_refuses_in_the_others_when_it_has_arrived() -> None:
    world = Simulation((HOME, ABROAD), seed=7)
    run(write(OURS), world.table(HOME), NOW)
    wrong = settings(ABROAD, stock=2)
    world.come_to_rest()
    with pytest.raises(SettingsMismatch):
        Ledger(wrong, table=world.table(ABROAD), clock=world.clock).add("stock", 1)
    right = settings(ABROAD, stock=4, seats=8)
    for _ in range(10):
        Ledger(right, table=world.table(ABROAD), clock=world.clock).add("stock", 1)
    world.come_to_rest()
    assert Reader(OURS, table=world.table(HOME), clock=world.clock).read("stock").value == 10
