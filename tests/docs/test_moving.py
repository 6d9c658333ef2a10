"""The recipe for moving: the cut is tried with writers, readers and crashes between all of its requests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from compactor import Compactor
from ledger import Ledger, Settings
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
    assert len(added) == SHARDS * (2 + SHARDS)


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


@pytest.mark.parametrize("nth", range(1, SHARDS + 1))
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


def test_a_move_that_dies_before_its_opening_is_completed_by_the_next_read(page: dict[str, Any], counter: str) -> None:
    page["add"](counter, 2, 7, "a", datetime.now(UTC))
    with instead(page, ledger=Mortal(Ledger(SETTINGS), 1)), pytest.raises(Dies):
        page["move"](counter)
    assert Reader(SETTINGS).read(counter).value == 0
    assert page["value"](counter) == 7


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


def test_what_is_rolled_back_goes_on_where_it_was(page: dict[str, Any], counter: str) -> None:
    page["add"](counter, 2, 7, "a", datetime.now(UTC))
    page["move"](counter)
    page["add"](counter, 3, 8, "b", datetime.now(UTC))
    with instead(page, dynamodb=Mortal(page["dynamodb"], 3)), pytest.raises(Dies):
        page["roll_back"](counter)
    page["roll_back"](counter)
    page["add"](counter, 3, 100, "c", datetime.now(UTC))
    assert Reader(SETTINGS).read(counter).value == 15
    shards = [page["dynamodb"].get_item(TableName="old", Key=page["old_key"](counter, s))["Item"] for s in range(4)]
    assert sum(map(page["amount"], shards)) == 115


def test_openings_of_which_one_failed_are_named_and_can_be_repeated(page: dict[str, Any], counter: str) -> None:
    class Half:
        def add_many(self, changes: list[Any]) -> list[Any]:
            return [*Ledger(SETTINGS).add_many(changes[:1]), OutcomeUnknown("No answer.")]

    values, stopped_at = {f"{counter}/1": 1, f"{counter}/2": 2}, datetime.now(UTC)
    with instead(page, ledger=Half()), pytest.raises(RuntimeError, match=f"Not opened: .*{counter}/2"):
        page["open_all"](values, stopped_at)
    page["open_all"](values, stopped_at)
    assert Reader(SETTINGS).values(values) == values


def test_a_cut_costs_a_write_unit_a_shard_and_one_for_the_opening(
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
    assert (cut.write_units, read.write_units, after.write_units) == (SHARDS + 1, 1, 2)
