"""The recipe for moving: the cut is tried with writers, readers and crashes between all of its requests."""

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compactor import Compactor
from ledger import Ledger, clocks
from ledger.errors import OutcomeUnknown
from reader import Reader
from tests.docs.conftest import SETTINGS, Account
from tests.docs.pages import RECIPES, Dies, Mortal, instead, run

SHARDS = 4


@pytest.fixture(scope="module")
def names(account: Account) -> dict[str, Any]:
    """What the page's Python defines."""
    account.create_table("old", "id")
    names = run(RECIPES / "moving.md")
    assert names["SHARDS"] == SHARDS
    return names


class Page:
    """The page's functions, for one counter; another ledger or client than the page made may stand `instead`."""

    def __init__(self, names: dict[str, Any], counter: str) -> None:
        self.names, self.counter = names, counter

    def add(self, shard: int, change: int, key: str, later: timedelta = timedelta(0)) -> None:
        self.names["add"](self.counter, shard, change, key, datetime.now(UTC) + later)

    def move(self) -> None:
        self.names["move"](self.counter)

    def roll_back(self) -> None:
        self.names["roll_back"](self.counter)

    def value(self) -> int:
        value: int = self.names["value"](self.counter)
        return value

    def read(self) -> int:
        """What this library has of it."""
        return Reader(SETTINGS).read(self.counter).value

    def shards(self) -> list[Any]:
        return list(self.names["old_shards"](self.counter))

    def amounts(self) -> list[int]:
        return [self.names["amount"](shard) for shard in self.shards()]

    def fold(self) -> None:
        """As if an hour had passed: every delta is old enough, and one is enough."""
        later = Compactor(replace(SETTINGS, fold_min=1), clock=lambda: clocks.wall_clock() + 3_600_000)
        assert later.compact(self.counter).folded

    def old_sum(self) -> int:
        """Of a counter that is open."""
        assert not any(shard.keys() & {"closed_at", "opened_at"} for shard in self.shards())
        return sum(self.amounts())

    def instead(self, **others: object) -> AbstractContextManager[None]:
        return instead(self.names, **others)

    def half_moved(self, client: str, nth: int) -> None:
        """A counter of 77, of which 70 came after the mover had died."""
        self.add(2, 7, "a")
        with self.instead(**{client: Mortal(self.names[client], nth)}), pytest.raises(Dies):
            self.move()
        self.add(0, 70, "b")


@pytest.fixture
def page(names: dict[str, Any], request: pytest.FixtureRequest) -> Page:
    return Page(names, request.node.name)


class Busy:
    """A client whose other users get their turn before each call."""

    def __init__(self, inner: object, others: Callable[[], None]) -> None:
        self._inner, self._others = inner, others

    def __getattr__(self, name: str) -> Any:
        if name != "exceptions":
            self._others()
        return getattr(self._inner, name)


def test_what_is_added_and_read_between_the_steps_of_a_move_is_exact(page: Page, account: Account) -> None:
    added: list[int] = []

    def everyone() -> None:
        """A change to every shard, each a power of four, and a read."""
        with page.instead(dynamodb=account.dynamodb):
            for shard in range(SHARDS):
                added.append(4 ** len(added))
                page.add(shard, added[-1], f"k{len(added)}")
            assert page.value() == sum(added)

    everyone()
    with page.instead(dynamodb=Busy(account.dynamodb, everyone)):
        page.move()
    everyone()
    assert page.read() == sum(added)
    assert len(added) == SHARDS * (2 + SHARDS + 1)


def test_a_read_during_the_whole_cut_is_a_true_sum(names: dict[str, Any], account: Account) -> None:
    """The move happens between the requests of one read."""
    for step in range(1 + SHARDS):
        page, steps = Page(names, f"read-during-a-cut/{step}"), iter(range(100))

        def mover(page: Page = page, step: int = step, steps: Any = steps) -> None:
            if next(steps) == step:
                with page.instead(dynamodb=account.dynamodb):
                    page.move()

        page.add(1, 5, "k")
        with page.instead(dynamodb=Busy(account.dynamodb, mover)):
            assert page.value() == 5


DEATHS = [*(("dynamodb", nth) for nth in range(1, SHARDS + 2)), ("ledger", 1), ("ledger", 2), ("reader", 1)]


@pytest.mark.parametrize(("client", "nth"), DEATHS)
def test_the_value_is_exact_wherever_a_move_died(page: Page, client: str, nth: int) -> None:
    page.half_moved(client, nth)
    assert page.value() == 77
    for _ in range(2):
        page.move()
        assert page.value() == page.read() == 77


def test_a_move_whose_opening_is_below_the_watermark_returns_when_it_is_settled(page: Page) -> None:
    class Late:
        def compact(self, counter: str) -> None:
            """Another compactor was there."""

    page.half_moved("ledger", 2)
    page.add(1, 700, "c", timedelta(minutes=1))
    page.fold()
    assert page.read() == 770
    for late in (Mortal(page.names["compactor"], 1), Late()):
        with page.instead(compactor=late), pytest.raises((Dies, RuntimeError)):
            page.move()
        assert Compactor(SETTINGS).verify(page.counter).strays == 1
        assert page.value() == 777
    for _ in range(2):
        page.move()
        assert page.read() == page.value() == 777


def test_the_opening_is_the_sum_of_the_closed_items_and_the_rest_can_be_recounted(page: Page, account: Account) -> None:
    for shard in range(SHARDS):
        page.add(shard, shard + 1, "a")
    page.move()
    page.add(0, 100, "b")
    keys = [page.names["old_key"](page.counter, shard) for shard in range(SHARDS)]
    items = [account.dynamodb.get_item(TableName="old", Key=key)["Item"] for key in keys]
    first, *_ = Reader(SETTINGS).history(page.counter)
    assert first.change == sum(map(page.names["amount"], items)) == 10
    assert Compactor(SETTINGS).verify(page.counter).ok


@pytest.mark.parametrize("nth", range(1, 2 * SHARDS + 4))
def test_what_is_rolled_back_goes_on_where_it_was(page: Page, nth: int) -> None:
    page.add(2, 7, "a")
    page.move()
    page.add(3, 8, "b")
    with page.instead(dynamodb=Mortal(page.names["dynamodb"], nth)), suppress(Dies):
        page.roll_back()
        assert nth > 2 * SHARDS + 2  # the last request is that of all puts
    for _ in range(2):
        page.roll_back()
    page.add(3, 100, "c")
    page.roll_back()  # somebody who does not know that it is done
    assert page.read() == 15
    assert page.old_sum() == 115


@pytest.mark.parametrize(("client", "nth"), DEATHS)
def test_a_move_that_died_is_rolled_back_with_the_whole_old_value(page: Page, client: str, nth: int) -> None:
    page.half_moved(client, nth)
    page.roll_back()
    assert page.old_sum() == 77


def test_to_roll_back_a_counter_that_was_never_moved_changes_nothing(page: Page) -> None:
    for shard in range(SHARDS):
        page.add(shard, 4**shard, "a")
    before = page.shards()
    page.roll_back()
    assert page.shards() == before
    assert page.old_sum() == 85


def test_a_stray_is_rolled_back_with_the_rest(page: Page) -> None:
    page.add(2, 7, "a")
    page.move()
    page.add(1, 70, "b")
    page.fold()
    page.add(1, 700, "late", timedelta(days=-1))
    assert page.read() == 77
    page.roll_back()
    assert page.old_sum() == 777


@pytest.mark.parametrize("damage", ["total", "last"])
def test_a_counter_whose_value_nobody_knows_is_not_rolled_back(page: Page, account: Account, damage: str) -> None:
    page.add(2, 7, "a")
    page.move()
    page.fold()
    broken = {"total": {"N": "8"}, "last": {"S": "0" * 26}}[damage]
    account.dynamodb.update_item(
        TableName="counters",
        Key={"pk": {"S": f"fold#eu-west-1#0#{page.counter}"}, "sk": {"S": "checkpoint"}},
        UpdateExpression="SET #damage = :broken, committed_ms = :long_ago",
        ExpressionAttributeNames={"#damage": damage},
        ExpressionAttributeValues={":broken": broken, ":long_ago": {"N": "0"}},
    )
    with pytest.raises(RuntimeError, match="not rolled back"):
        page.roll_back()
    assert page.amounts() == [0, 0, 7, 0]
    assert all("closed_at" in shard for shard in page.shards())


def test_openings_of_which_one_failed_are_named_and_can_be_repeated(page: Page) -> None:
    class Half:
        def add_many(self, changes: list[Any]) -> list[Any]:
            return [*Ledger(SETTINGS).add_many(changes[:1]), OutcomeUnknown("No answer.")]

    values, stopped_at = {f"{page.counter}/1": 1, f"{page.counter}/2": 2}, datetime.now(UTC)
    with page.instead(ledger=Half()), pytest.raises(RuntimeError, match=f"Not opened: .*{page.counter}/2"):
        page.names["open_all"](values, stopped_at)
    page.names["open_all"](values, stopped_at)
    assert Reader(SETTINGS).values(values) == values


def test_a_cut_costs_a_write_unit_a_shard_and_two_and_a_read_none(page: Page, account: Account) -> None:
    page.add(2, 7, "a")
    clients, key = (page.names["dynamodb"],), ("pk", "sk", "id")
    with account.bill(*clients, key=key) as cut:
        page.move()
    with account.bill(*clients, key=key) as read:
        page.value()
    with account.bill(*clients, key=key) as after:
        page.add(2, 7, "b")
    assert (cut.write_units, read.write_units, after.write_units) == (SHARDS + 2, 0, 2)
