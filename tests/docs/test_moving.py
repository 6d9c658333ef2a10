"""The recipe for moving: the cut is tried with writers, readers and crashes between all of its requests."""

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from compactor import Compactor
from ledger import clocks
from tests.docs.conftest import SETTINGS, Account, Names, value
from tests.docs.pages import Dies, Mortal, instead

SHARDS = 4
DEATHS = [*(("dynamodb", nth) for nth in range(1, SHARDS + 2)), ("ledger", 1), ("ledger", 2), ("reader", 1)]


class Moving:
    """The page's functions, for one counter; another ledger or client than the page made may stand `instead`."""

    def __init__(self, names: Names, counter: str) -> None:
        self.names, self.counter = names, counter

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self.names[name](self.counter, *given)

    def add(self, shard: int, change: int, key: str, later: timedelta = timedelta(0)) -> None:
        self.names["add"](self.counter, shard, change, key, datetime.now(UTC) + later)

    def read(self) -> int:
        """What this library has of it."""
        return value(self.counter)

    def fold(self) -> None:
        """As if an hour had passed: every delta is old enough, and one is enough."""
        later = Compactor(replace(SETTINGS, fold_min=1), clock=lambda: clocks.wall_clock() + 3_600_000)
        assert later.compact(self.counter).folded

    def old_sum(self) -> int:
        """Of a counter that is open."""
        shards = self.old_shards()
        assert not any(shard.keys() & {"closed_at", "opened_at"} for shard in shards)
        return sum(map(self.names["amount"], shards))

    def instead(self, **others: object) -> AbstractContextManager[None]:
        return instead(self.names, **others)

    def half_moved(self, client: str, nth: int) -> None:
        """A counter of 77, of which 70 came after the mover had died."""
        self.add(2, 7, "a")
        with self.instead(**{client: Mortal(self.names[client], nth)}), pytest.raises(Dies):
            self.move()
        self.add(0, 70, "b")


@pytest.fixture
def names(page: Callable[[str | Path], Names]) -> Names:
    return page("moving")


@pytest.fixture
def moving(names: Names, request: pytest.FixtureRequest) -> Moving:
    return Moving(names, request.node.name)


class Busy:
    """A client whose other users get their turn before each call."""

    def __init__(self, inner: object, others: Callable[[], None]) -> None:
        self._inner, self._others = inner, others

    def __getattr__(self, name: str) -> Any:
        if name != "exceptions":
            self._others()
        return getattr(self._inner, name)


def test_what_is_added_and_read_between_the_steps_of_a_move_is_exact(moving: Moving, account: Account) -> None:
    added: list[int] = []

    def everyone() -> None:
        """A change to every shard, each a power of four, and a read."""
        with moving.instead(dynamodb=account.dynamodb):
            for shard in range(SHARDS):
                added.append(4 ** len(added))
                moving.add(shard, added[-1], f"k{len(added)}")
            assert moving.value() == sum(added)

    everyone()
    with moving.instead(dynamodb=Busy(account.dynamodb, everyone)):
        moving.move()
    everyone()
    assert moving.read() == sum(added)
    assert len(added) == SHARDS * (2 + SHARDS + 1)
    assert Compactor(SETTINGS).verify(moving.counter).ok


def test_a_read_during_the_whole_cut_is_a_true_sum(names: Names, account: Account) -> None:
    """The move happens between the requests of one read."""
    for step in range(1 + SHARDS):
        moving, steps = Moving(names, f"read-during-a-cut/{step}"), iter(range(100))

        def mover(moving: Moving = moving, step: int = step, steps: Any = steps) -> None:
            if next(steps) == step:
                with moving.instead(dynamodb=account.dynamodb):
                    moving.move()

        moving.add(1, 5, "k")
        with moving.instead(dynamodb=Busy(account.dynamodb, mover)):
            assert moving.value() == 5


@pytest.mark.parametrize(("client", "nth"), DEATHS)
def test_a_move_that_died_goes_on_or_back_with_the_whole_value(names: Names, client: str, nth: int) -> None:
    on, back = (Moving(names, f"died/{client}/{nth}/{way}") for way in ("on", "back"))
    on.half_moved(client, nth)
    assert on.value() == 77
    for _ in range(2):
        on.move()
        assert on.value() == on.read() == 77
    back.half_moved(client, nth)
    back.roll_back()
    assert back.old_sum() == 77


def test_a_move_whose_opening_is_below_the_watermark_returns_when_it_is_settled(moving: Moving) -> None:
    class Late:
        def compact(self, counter: str) -> None:
            """Another compactor was there."""

    moving.half_moved("ledger", 2)
    moving.add(1, 700, "c", timedelta(minutes=1))
    moving.fold()
    assert moving.read() == 770
    for late in (Mortal(moving.names["compactor"], 1), Late()):
        with moving.instead(compactor=late), pytest.raises((Dies, RuntimeError)):
            moving.move()
        assert moving.value() == 777
    moving.move()
    assert moving.read() == moving.value() == 777


def test_a_counter_whose_value_nobody_knows_is_not_rolled_back(moving: Moving, account: Account) -> None:
    moving.add(2, 7, "a")
    moving.move()
    moving.fold()
    key = {"pk": {"S": f"fold#eu-west-1#0#{moving.counter}"}, "sk": {"S": "checkpoint"}}
    checkpoint = account.dynamodb.get_item(TableName="counters", Key=key)["Item"]
    account.dynamodb.put_item(TableName="counters", Item=checkpoint | {"total": {"N": "8"}})
    with pytest.raises(RuntimeError, match="not rolled back"):
        moving.roll_back()
    assert all("closed_at" in shard for shard in moving.old_shards())


@pytest.mark.parametrize("nth", range(1, 2 * SHARDS + 4))
def test_what_is_rolled_back_goes_on_where_it_was_strays_too(moving: Moving, nth: int) -> None:
    moving.add(2, 7, "a")
    moving.move()
    moving.add(3, 8, "b")
    moving.fold()
    moving.add(1, 700, "late", timedelta(days=-1))
    with moving.instead(dynamodb=Mortal(moving.names["dynamodb"], nth)), suppress(Dies):
        moving.roll_back()
        assert nth > 2 * SHARDS + 2  # the last request is that of all puts
    moving.roll_back()
    moving.add(3, 100, "c")
    moving.roll_back()  # somebody who does not know that it is done
    assert moving.old_sum() == 815


def test_a_cut_costs_a_write_unit_a_shard_and_two_and_a_read_none(moving: Moving, account: Account) -> None:
    moving.add(2, 7, "a")
    bills = []
    for does in (moving.move, moving.value, lambda: moving.add(2, 7, "b")):
        with account.bill(moving.names["dynamodb"]) as bill:
            does()
        bills += [bill[0].write_units]
    assert bills == [SHARDS + 2, 0, 2]
