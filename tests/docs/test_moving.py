"""The recipe for moving: the cut is tried with writers, readers and crashes between all of its requests."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compactor import Compactor
from ledger import Ledger, Settings, clocks
from ledger.errors import OutcomeUnknown
from reader import Reader
from tests.docs.conftest import Account
from tests.docs.pages import RECIPES, Dies, Mortal, instead, run

SETTINGS = Settings(table="counters", region="eu-west-1")
SHARDS = 4


@pytest.fixture(scope="module")
def page(account: Account) -> dict[str, Any]:
    account.create_table("old", "id")
    names = run(RECIPES / "moving.md")
    assert names["SHARDS"] == SHARDS
    return names


def fold(counter: str) -> None:
    """As if an hour had passed: every delta is old enough, and one is enough."""
    later = Compactor(replace(SETTINGS, fold_min=1), clock=lambda: clocks.wall_clock() + 3_600_000)
    assert later.compact(counter).folded


def old_sum(page: dict[str, Any], counter: str) -> int:
    """Of a counter that is open."""
    shards = page["old_shards"](counter)
    assert not any(shard.keys() & {"closed_at", "opened_at"} for shard in shards)
    return sum(map(page["amount"], shards))


@pytest.fixture
def counter(request: pytest.FixtureRequest) -> str:
    name: str = request.node.name
    return name


class Busy:
    """A client whose other users get their turn before each call."""

    def __init__(self, inner: object, others: Callable[[], None]) -> None:
        self._inner, self._others = inner, others

    def __getattr__(self, name: str) -> Any:
        if name != "exceptions":
            self._others()
        return getattr(self._inner, name)


def test_what_is_added_and_read_between_the_steps_of_a_move_is_exact(
    page: dict[str, Any], account: Account, counter: str
) -> None:
    added: list[int] = []

    def everyone() -> None:
        """A change to every shard, each a power of four, and a read."""
        with instead(page, dynamodb=account.dynamodb):
            for shard in range(SHARDS):
                added.append(4 ** len(added))
                page["add"](counter, shard, added[-1], f"k{len(added)}", datetime.now(UTC))
            assert page["value"](counter) == sum(added)

    everyone()
    with instead(page, dynamodb=Busy(account.dynamodb, everyone)):
        page["move"](counter)
    everyone()
    assert Reader(SETTINGS).read(counter).value == sum(added)
    assert len(added) == SHARDS * (2 + SHARDS + 1)


def test_a_read_during_the_whole_cut_is_a_true_sum(page: dict[str, Any], account: Account, counter: str) -> None:
    """The move happens between the requests of one read."""
    page["add"](counter, 1, 5, "k", datetime.now(UTC))
    for step in range(1 + SHARDS):
        other, steps = f"{counter}/{step}", iter(range(100))

        def mover(other: str = other, step: int = step, steps: Any = steps) -> None:
            if next(steps) == step:
                with instead(page, dynamodb=account.dynamodb):
                    page["move"](other)

        page["add"](other, 1, 5, "k", datetime.now(UTC))
        with instead(page, dynamodb=Busy(account.dynamodb, mover)):
            assert page["value"](other) == 5


@pytest.mark.parametrize("nth", range(1, SHARDS + 2))
def test_a_move_that_dies_after_any_request_is_completed_by_a_repetition(
    page: dict[str, Any], account: Account, counter: str, nth: int
) -> None:
    page["add"](counter, 2, 7, "a", datetime.now(UTC))
    with instead(page, dynamodb=Mortal(account.dynamodb, nth)), pytest.raises(Dies):
        page["move"](counter)
    page["add"](counter, 0, 70, "b", datetime.now(UTC))
    for _ in range(2):
        page["move"](counter)
    assert Reader(SETTINGS).read(counter).value == page["value"](counter) == 77


DEATHS = [*(("dynamodb", nth) for nth in range(1, SHARDS + 2)), ("ledger", 1), ("ledger", 2), ("reader", 1)]


def half_moved(page: dict[str, Any], counter: str, client: str, nth: int) -> None:
    """A counter of 77, of which 70 came after the mover had died."""
    page["add"](counter, 2, 7, "a", datetime.now(UTC))
    with instead(page, **{client: Mortal(page[client], nth)}), pytest.raises(Dies):
        page["move"](counter)
    page["add"](counter, 0, 70, "b", datetime.now(UTC))


@pytest.mark.parametrize(("client", "nth"), DEATHS)
def test_the_value_is_exact_wherever_a_move_died(page: dict[str, Any], counter: str, client: str, nth: int) -> None:
    half_moved(page, counter, client, nth)
    assert page["value"](counter) == 77
    page["move"](counter)
    assert page["value"](counter) == Reader(SETTINGS).read(counter).value == 77


def test_an_opening_that_comes_below_the_watermark_is_in_the_value_when_the_move_returns(
    page: dict[str, Any], counter: str
) -> None:
    half_moved(page, counter, "ledger", 2)
    page["add"](counter, 1, 700, "c", datetime.now(UTC) + timedelta(minutes=1))
    fold(counter)
    assert Reader(SETTINGS).read(counter).value == 770
    assert page["value"](counter) == 777
    for _ in range(2):
        page["move"](counter)
        assert Reader(SETTINGS).read(counter).value == page["value"](counter) == 777


def test_a_move_whose_opening_is_not_settled_does_not_return_and_the_value_is_exact(
    page: dict[str, Any], counter: str
) -> None:
    class Late:
        def compact(self, counter: str) -> None:
            """Another compactor was there."""

    half_moved(page, counter, "ledger", 2)
    page["add"](counter, 1, 700, "c", datetime.now(UTC) + timedelta(minutes=1))
    fold(counter)
    for late in (Mortal(page["compactor"], 1), Late()):
        with instead(page, compactor=late), pytest.raises((Dies, RuntimeError)):
            page["move"](counter)
        assert Compactor(SETTINGS).verify(counter).strays == 1
        assert page["value"](counter) == 777
    page["move"](counter)
    assert Reader(SETTINGS).read(counter).value == page["value"](counter) == 777


def test_the_opening_is_the_sum_of_the_closed_items_and_the_rest_can_be_recounted(
    page: dict[str, Any], account: Account, counter: str
) -> None:
    for shard in range(SHARDS):
        page["add"](counter, shard, shard + 1, "a", datetime.now(UTC))
    page["move"](counter)
    page["add"](counter, 0, 100, "b", datetime.now(UTC))
    items = [account.dynamodb.get_item(TableName="old", Key=page["old_key"](counter, s))["Item"] for s in range(SHARDS)]
    first, *_ = Reader(SETTINGS).history(counter)
    assert first.change == sum(map(page["amount"], items)) == 10
    assert Compactor(SETTINGS).verify(counter).ok


@pytest.mark.parametrize("nth", range(1, 2 * SHARDS + 4))
def test_what_is_rolled_back_goes_on_where_it_was(page: dict[str, Any], counter: str, nth: int) -> None:
    page["add"](counter, 2, 7, "a", datetime.now(UTC))
    page["move"](counter)
    page["add"](counter, 3, 8, "b", datetime.now(UTC))
    with instead(page, dynamodb=Mortal(page["dynamodb"], nth)), contextlib.suppress(Dies):
        page["roll_back"](counter)
        assert nth > 2 * SHARDS + 2  # the last request is that of all puts
    for _ in range(2):
        page["roll_back"](counter)
    page["add"](counter, 3, 100, "c", datetime.now(UTC))
    page["roll_back"](counter)  # somebody who does not know that it is done
    assert Reader(SETTINGS).read(counter).value == 15
    assert old_sum(page, counter) == 115


@pytest.mark.parametrize(("client", "nth"), DEATHS)
def test_a_move_that_died_is_rolled_back_with_the_whole_old_value(
    page: dict[str, Any], counter: str, client: str, nth: int
) -> None:
    half_moved(page, counter, client, nth)
    page["roll_back"](counter)
    assert old_sum(page, counter) == 77


def test_to_roll_back_a_counter_that_was_never_moved_changes_nothing(page: dict[str, Any], counter: str) -> None:
    for shard in range(SHARDS):
        page["add"](counter, shard, 4**shard, "a", datetime.now(UTC))
    before = page["old_shards"](counter)
    page["roll_back"](counter)
    assert page["old_shards"](counter) == before
    assert old_sum(page, counter) == 85


def test_a_stray_is_rolled_back_with_the_rest(page: dict[str, Any], counter: str) -> None:
    page["add"](counter, 2, 7, "a", datetime.now(UTC))
    page["move"](counter)
    page["add"](counter, 1, 70, "b", datetime.now(UTC))
    fold(counter)
    page["add"](counter, 1, 700, "late", datetime.now(UTC) - timedelta(days=1))
    assert Reader(SETTINGS).read(counter).value == 77
    page["roll_back"](counter)
    assert old_sum(page, counter) == 777


@pytest.mark.parametrize("damage", ["total", "last"])
def test_a_counter_whose_value_nobody_knows_is_not_rolled_back(
    page: dict[str, Any], account: Account, counter: str, damage: str
) -> None:
    page["add"](counter, 2, 7, "a", datetime.now(UTC))
    page["move"](counter)
    fold(counter)
    broken = {"total": {"N": "8"}, "last": {"S": "0" * 26}}[damage]
    account.dynamodb.update_item(
        TableName="counters",
        Key={"pk": {"S": f"fold#eu-west-1#0#{counter}"}, "sk": {"S": "checkpoint"}},
        UpdateExpression="SET #damage = :broken, committed_ms = :long_ago",
        ExpressionAttributeNames={"#damage": damage},
        ExpressionAttributeValues={":broken": broken, ":long_ago": {"N": "0"}},
    )
    with pytest.raises(RuntimeError, match="not rolled back"):
        page["roll_back"](counter)
    shards = page["old_shards"](counter)
    assert [page["amount"](shard) for shard in shards] == [0, 0, 7, 0]
    assert all("closed_at" in shard for shard in shards)


def test_openings_of_which_one_failed_are_named_and_can_be_repeated(page: dict[str, Any], counter: str) -> None:
    class Half:
        def add_many(self, changes: list[Any]) -> list[Any]:
            return [*Ledger(SETTINGS).add_many(changes[:1]), OutcomeUnknown("No answer.")]

    values, stopped_at = {f"{counter}/1": 1, f"{counter}/2": 2}, datetime.now(UTC)
    with instead(page, ledger=Half()), pytest.raises(RuntimeError, match=f"Not opened: .*{counter}/2"):
        page["open_all"](values, stopped_at)
    page["open_all"](values, stopped_at)
    assert Reader(SETTINGS).values(values) == values


def test_a_cut_costs_a_write_unit_a_shard_and_two_and_a_read_none(
    page: dict[str, Any], account: Account, counter: str
) -> None:
    page["add"](counter, 2, 7, "a", datetime.now(UTC))
    clients, key = (page["dynamodb"],), ("pk", "sk", "id")
    with account.bill(*clients, key=key) as cut:
        page["move"](counter)
    with account.bill(*clients, key=key) as read:
        page["value"](counter)
    with account.bill(*clients, key=key) as after:
        page["add"](counter, 2, 7, "b", datetime.now(UTC))
    assert (cut.write_units, read.write_units, after.write_units) == (SHARDS + 2, 0, 2)
