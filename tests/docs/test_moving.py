"""The recipe for moving: the cut is tried with writers, readers and crashes between all of its requests."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
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

    def instead(self, **others: object) -> AbstractContextManager[None]:
        return instead(self.names, **others)

    def half_moved(self, client: str, nth: int) -> None:
        """A counter of 77, of which 70 came after the mover had died."""
        self.add(2, 7, "a")
        with self.instead(**{client: Mortal(self.names[client], nth)}), pytest.raises(Dies):
            self.move()
        self.add(0, 70, "b")


@pytest.fixture
def names(page: Callable[[str], Names]) -> Names:
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


def test_what_is_added_between_the_steps_of_a_move_counts_once_and_a_read_is_true_or_refused(
    moving: Moving, account: Account
) -> None:
    added, refused = list[int](), list[int]()

    def everyone() -> None:
        """A change to every shard, each a power of four, and a read."""
        with moving.instead(dynamodb=account.dynamodb):
            for shard in range(SHARDS):
                added.append(4 ** len(added))
                moving.add(shard, added[-1], f"k{len(added)}")
            try:
                assert moving.value() == sum(added)
            except RuntimeError:
                refused.append(len(added))

    everyone()
    with moving.instead(dynamodb=Busy(account.dynamodb, everyone)):
        moving.move()
    everyone()
    assert moving.value() == moving.read() == sum(added)
    assert len(added) == SHARDS * (2 + SHARDS + 1)
    assert refused == [SHARDS * step for step in range(3, 3 + SHARDS)]  # from the first closing to the opening
    assert Compactor(SETTINGS).verify(moving.counter).ok


def test_a_move_between_the_requests_of_a_read_makes_it_true_or_refused(names: Names, account: Account) -> None:
    outcomes: list[object] = []
    for step in range(SHARDS):
        moving, steps = Moving(names, f"read-during-a-cut/{step}"), iter(range(100))

        def mover(moving: Moving = moving, step: int = step, steps: Any = steps) -> None:
            if next(steps) == step:
                with moving.instead(dynamodb=account.dynamodb):
                    moving.move()

        moving.add(1, 5, "k")
        with moving.instead(dynamodb=Busy(account.dynamodb, mover)):
            try:
                outcomes.append(moving.value())
            except RuntimeError as error:
                outcomes.append(type(error))
    assert outcomes == [5, *[RuntimeError] * (SHARDS - 1)]


@pytest.mark.parametrize(("client", "nth"), DEATHS)
def test_a_move_that_died_goes_on_with_the_whole_value(names: Names, client: str, nth: int) -> None:
    moving = Moving(names, f"died/{client}/{nth}")
    moving.half_moved(client, nth)
    for _ in range(2):
        moving.move()
        assert moving.value() == moving.read() == 77


def test_a_move_whose_opening_is_below_the_watermark_returns_when_it_is_settled(moving: Moving) -> None:
    class Late:
        def compact(self, counter: str) -> None:
            """Another compactor was there."""

    moving.half_moved("ledger", 2)
    moving.add(1, 700, "c", timedelta(minutes=1))
    later = Compactor(replace(SETTINGS, fold_min=1), clock=lambda: clocks.wall_clock() + 3_600_000)
    assert later.compact(moving.counter).folded
    assert moving.read() == 770
    for late in (Mortal(moving.names["compactor"], 1), Late()):
        with moving.instead(compactor=late), pytest.raises((Dies, RuntimeError)):
            moving.move()
    moving.move()
    assert moving.read() == moving.value() == 777


def test_a_cut_costs_a_write_unit_a_shard_and_two_and_a_read_none(moving: Moving, account: Account) -> None:
    moving.add(2, 7, "a")
    bills = []
    for does in (moving.move, moving.value, lambda: moving.add(2, 7, "b")):
        with account.bill(moving.names["dynamodb"]) as bill:
            does()
        bills += [bill[0].write_units]
    assert bills == [SHARDS + 2, 0, 2]
