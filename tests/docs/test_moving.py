"""The recipe for moving: the cut is tried with writers, readers and crashes between all of its
requests.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from compactor import Compactor
from ledger.core import clocks
from tests.docs.conftest import SETTINGS, Account, Names, value
from tests.docs.pages import Before, Dies, instead, mortal

SHARDS = 4
DEATHS = [
    *(("dynamodb", nth) for nth in range(1, SHARDS + 2)),
    ("ledger", 1),
    ("ledger", 2),
    ("reader", 1),
]


class Moving:
    """The page's functions, for one counter."""

    def __init__(self, names: Names, counter: str) -> None:
        self.names, self.counter = names, counter

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self.names[name](self.counter, *given)

    def add(self, shard: int, change: int, key: str, later: timedelta = timedelta(0)) -> None:
        self.names["add"](self.counter, shard, change, key, datetime.now(UTC) + later)

    def half_moved(self, client: str, nth: int) -> None:
        """A counter of 77, of which 70 came after the mover had died."""
        self.add(2, 7, "a")
        with instead(self.names, **{client: mortal(self.names[client], nth)}), pytest.raises(Dies):
            self.move()
        self.add(0, 70, "b")


@pytest.fixture
def names(page: Callable[[str], Names]) -> Names:
    return page("moving")


@pytest.fixture
def moving(names: Names, request: pytest.FixtureRequest) -> Moving:
    return Moving(names, request.node.name)


def test_a_change_between_the_steps_of_a_move_counts_once(moving: Moving, account: Account) -> None:
    added, refused = list[int](), list[int]()

    def everyone() -> None:
        """A change to every shard, each a power of four, and a read."""
        with instead(moving.names, dynamodb=account.dynamodb):
            for shard in range(SHARDS):
                added.append(4 ** len(added))
                moving.add(shard, added[-1], f"k{len(added)}")
            try:
                assert moving.value() == sum(added)
            except RuntimeError:
                refused.append(len(added))

    everyone()
    with instead(moving.names, dynamodb=Before(account.dynamodb, everyone)):
        moving.move()
    everyone()
    assert moving.value() == value(moving.counter) == sum(added)
    assert len(added) == SHARDS * (2 + SHARDS + 1)
    # from the first closing to the opening
    assert refused == [SHARDS * step for step in range(3, 3 + SHARDS)]
    assert Compactor(SETTINGS).verify(moving.counter).ok


def test_a_move_within_a_read_makes_it_true_or_refused(names: Names, account: Account) -> None:
    outcomes: list[object] = []
    for step in range(SHARDS):
        moving, steps = Moving(names, f"read-during-a-cut/{step}"), iter(range(100))

        def mover(moving: Moving = moving, step: int = step, steps: Any = steps) -> None:
            if next(steps) == step:
                with instead(names, dynamodb=account.dynamodb):
                    moving.move()

        moving.add(1, 5, "k")
        with instead(names, dynamodb=Before(account.dynamodb, mover)):
            try:
                outcomes.append(moving.value())
            except RuntimeError as error:
                outcomes.append(type(error))
    assert outcomes == [5, *[RuntimeError] * (SHARDS - 1)]


def test_a_move_that_died_goes_on_with_the_whole_value(names: Names) -> None:
    for client, nth in DEATHS:
        moving = Moving(names, f"died/{client}/{nth}")
        moving.half_moved(client, nth)
        for _ in range(2):
            moving.move()
            assert moving.value() == value(moving.counter) == 77


def test_a_move_that_opens_below_the_watermark_waits_for_settle(
    moving: Moving,
) -> None:
    moving.half_moved("ledger", 2)
    moving.add(1, 700, "c", timedelta(minutes=1))
    later = Compactor(replace(SETTINGS, fold_min=1), clock=lambda: clocks.wall_clock() + 3_600_000)
    assert later.compact(moving.counter).folded
    assert value(moving.counter) == 770
    another_was_there = SimpleNamespace(compact=lambda counter: None)
    for late in (mortal(moving.names["compactor"], 1), another_was_there):
        with instead(moving.names, compactor=late), pytest.raises((Dies, RuntimeError)):
            moving.move()
    moving.move()
    assert value(moving.counter) == moving.value() == 777


def test_a_cuts_cost_is_a_write_a_shard_and_two(moving: Moving, account: Account) -> None:
    moving.add(2, 7, "a")
    bills = []
    for does in (moving.move, moving.value, lambda: moving.add(2, 7, "b")):
        with account.bill(moving.names["dynamodb"]) as bill:
            does()
        bills += [bill[0].write_units]
    assert bills == [SHARDS + 2, 0, 2]
