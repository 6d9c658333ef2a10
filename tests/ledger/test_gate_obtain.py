"""How rights come to a lane that has too few: how much is given, what is taken over, and what that asks of whom."""

from dataclasses import replace
from typing import Any

import pytest

from ledger import tokens
from ledger.errors import GaveUp
from ledger.gate import items
from ledger.gate.gate import Gate
from ledger.gate.obtain import obtain, take_over
from ledger.limit import UP
from ledger.requests import Put, Request, Update
from ledger.values import Lane
from tests.ledger.test_gate import HERE, SEATS, THERE, A, B, World

MANY = 10**9
TO_THERE, FROM_HERE = (f"{B}#0", UP), (f"{A}#0", UP)


@pytest.fixture
def world() -> World:
    """Ten seats, and a gate in each Region."""
    world = World(SEATS)
    world.add(0)
    world.add(0, THERE, B)
    return world


def put(world: World, lane: Lane, **changed: Any) -> Gate:
    """The gate of a lane, with something else in it."""
    gate = replace(world.gate(lane), **changed)
    world.tables[lane.region].answer(Put(items.gate_item(gate)))
    return gate


def asked(world: World, region: str, kind: type[Request] = Update) -> list[Request]:  # type: ignore[assignment]
    return [each for each in world.tables[region].asked if isinstance(each, kind)]


def decided_at(world: World, *times_ms: int) -> dict[str, int]:
    return {tokens.keyed("", str(at_ms), world.now_ms + at_ms): 0 for at_ms in times_ms}


@pytest.mark.parametrize(
    ("giver", "taker", "given"),
    [
        ((), (), MANY / 2),
        ((0, 500, 1_000), (), MANY / 3.5),  # three in a second, and the second that is not seen: 1.5 a second, and 1
        ((), (0, 500, 1_000), MANY * 2.5 / 3.5),
        ((7_000,), (0, 1_000), MANY * 2 / 4),
        ((0, 19_000), (0,), MANY * 2 / 3.1),
    ],
)
def test_who_gives_keeps_in_proportion_to_how_fast_tokens_came_to_both(
    world: World, giver: tuple[int, ...], taker: tuple[int, ...], given: float
) -> None:
    put(world, HERE, rights={UP: MANY}, recent=decided_at(world, *giver))
    put(world, THERE, recent=decided_at(world, *taker))
    assert world.run(obtain(world.gates(B), THERE, UP, 1), B)
    assert world.gate(HERE).given == {TO_THERE: int(given)}
    assert (world.gate(HERE).rights, world.gate(THERE).rights) == ({UP: MANY - int(given)}, {UP: int(given)})


def test_what_has_arrived_is_not_taken_over_again(world: World) -> None:
    for given in (0, 3):
        cells = {"given": {TO_THERE: given}, "got": {FROM_HERE: given}} if given else {"given": {}, "got": {}}
        giver = put(world, HERE, given=cells["given"])
        taker = put(world, THERE, got=cells["got"])
        world.tables[B].asked.clear()
        assert world.run(take_over(world.gates(B), taker, giver, UP), B) == taker
        assert not asked(world, B)


def test_what_another_process_took_over_meanwhile_arrives_once(world: World) -> None:
    giver, stale = put(world, HERE, given={TO_THERE: 3}), world.gate(THERE)
    arrived = put(world, THERE, got={FROM_HERE: 3}, rights={UP: 3})
    assert world.run(take_over(world.gates(B), stale, giver, UP), B) == arrived == world.gate(THERE)


def test_what_is_on_its_way_to_a_lane_that_the_settings_do_not_name_is_neither_taken_nor_refused(world: World) -> None:
    put(world, HERE, rights={UP: 0}, given={("ap-south-1#0", UP): 10})
    with pytest.raises(GaveUp, match="Nothing was decided"):
        world.add(1)
    assert world.gate().number == 1
