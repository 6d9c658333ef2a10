"""How rights come to a lane that has too few: how much is given, what is taken over, and what that asks of whom."""

from dataclasses import replace
from typing import Any

import pytest

from ledger import tokens
from ledger.errors import GateLost, GaveUp, OutOfReach, Unavailable
from ledger.gate import items
from ledger.gate.decide import decide_hold
from ledger.gate.gate import Gate
from ledger.gate.gates import Gates
from ledger.gate.move import obtain, take_over
from ledger.limit import DOWN, UP
from ledger.requests import At, Delete, GetMany, Pause, Put, Request, Update
from ledger.values import Lane
from tests.ledger.test_gate import COUNTER, HERE, SEATS, THERE, A, B, World

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


def asked(world: World, region: str, kind: type[Request] = Update) -> list[Request]:
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


def steps(world: World, region: str = B) -> list[str]:
    """What a process there asked, in order: a letter for the home of what it is of, and the kind of request."""
    told = []
    for each in world.tables[region].asked:
        where, request = (each.region, each.request) if isinstance(each, At) else (region, each)
        told.append(f"{'here' if where == region else 'there'} {type(request).__name__}")
    return told


def obtained(world: World, need: int, gates: Gates | None = None, lane: Lane = THERE, **given: int) -> bool:
    world.tables[B].asked.clear()
    return world.run(obtain(gates or world.gates(B), lane, UP, need, **given), B)


START = ["here Get", "here Query", "here GetMany"]
EMPTY = ["there Query"]


def test_what_all_lanes_lack_is_told_when_each_was_asked_once(world: World) -> None:
    assert not obtained(world, 11)
    given = ["there Get", "there Update", "here Update"]
    assert steps(world) == [*START, *given, *EMPTY]
    assert not obtained(world, 11)
    assert steps(world) == [*START, "there Get", *EMPTY]
    assert world.tables[B].asked[2] == GetMany((items.gate_key(HERE),), consistent=False)
    assert obtained(world, 10)
    assert steps(world) == START[:1]


def test_all_that_is_left_elsewhere_is_enough_where_it_is_just_what_is_needed(world: World) -> None:
    put(world, HERE, recent=decided_at(world, *range(900)))  # so busy that it keeps what is not needed
    put(world, THERE, rights={UP: 1})
    assert obtained(world, 5, pause_ms=7)
    assert steps(world) == [*START, "here Pause", "here Get", "there Get", "there Update", "here Update"]
    assert Pause(7) in world.tables[B].asked
    assert world.gate(HERE).given == {TO_THERE: 4}


def test_a_hold_elsewhere_that_is_over_ends_before_its_lane_is_empty(world: World) -> None:
    world.run(decide_hold(world.gates(A), world.held(10)))
    world.now_ms += 61_000
    assert obtained(world, 10)
    assert steps(world) == [*START, "there Get", "there Update", "there Update", "here Update"]


def test_a_copy_is_asked_for_what_it_is_seen_to_have_and_told_what_is_left(world: World) -> None:
    copy = put(world, HERE, rights={UP: 9})
    world.tables[B].answer(Put(items.gate_item(copy)))
    put(world, HERE, rights={UP: 2})
    assert not obtained(world, 9)
    assert steps(world) == [*START, "there Update", "there Update", "here Update", *EMPTY]


@pytest.mark.parametrize(("has", "first"), [(1, []), (0, ["there Get"])])
def test_who_is_seen_to_have_some_is_asked_at_once_and_of_others_the_gate_is_read(
    world: World, has: int, first: list[str]
) -> None:
    copy = replace(world.gate(HERE), rights={UP: has})
    world.tables[B].answer(Put(items.gate_item(copy)))
    assert obtained(world, 1)
    assert steps(world) == [*START, *first, "there Update", "here Update"]


def test_a_gate_elsewhere_that_is_gone_is_not_asked_for_its_copy_s_rights(world: World) -> None:
    world.tables[B].answer(Put(items.gate_item(put(world, HERE, given={TO_THERE: 1}))))
    world.tables[A].answer(Put(items.gate_item(put(world, THERE, got={FROM_HERE: 1}))))
    world.tables[A].answer(Delete(items.gate_key(HERE)))
    with pytest.raises(OutOfReach, match="its gate is gone") as raised:
        obtained(world, 11)
    assert isinstance(raised.value.__cause__, GateLost)


def test_lanes_here_are_asked_first_then_those_that_are_seen_to_have_most(world: World) -> None:
    """Three lanes there, with 4 that are not seen, with 1 and 5; one here, with 1."""
    taker, *others = Lane(B, 1, COUNTER), HERE, Lane(A, 1, COUNTER), Lane(A, 2, COUNTER), THERE
    gates = Gates((taker, *others), SEATS, B)
    for lane, has in zip(others, (4, 1, 5, 1), strict=True):
        gate = replace(world.gate(HERE), lane=lane, rights={UP: has})
        for region in {lane.region, B} if lane != HERE else {A}:
            world.tables[region].answer(Put(items.gate_item(gate)))
    assert obtained(world, 11, gates, taker, pause_ms=9)
    assert [each for each in world.tables[B].asked if isinstance(each, Pause)] == [Pause(9)]
    updated = [each.request if isinstance(each, At) else each for each in world.tables[B].asked]
    asked_for = [each.key for each in updated if isinstance(each, Update) and each.key != items.gate_key(taker)]
    assert asked_for == [items.gate_key(others[n]) for n in (3, 2, 1, 0)]


def test_who_has_enough_by_what_is_on_its_way_waits_for_nobody_and_takes_no_more(world: World) -> None:
    gate, second = put(world, HERE, given={TO_THERE: 3}), Lane(A, 1, COUNTER)
    for lane in (second, HERE):
        world.tables[B].answer(Put(items.gate_item(replace(gate, lane=lane))))
    gates = Gates((THERE, second, HERE), SEATS, B)
    assert obtained(world, 3, gates, pause_ms=9)
    assert steps(world) == [*START, "here Update"]


def test_a_lane_that_cannot_be_asked_is_not_missed_where_others_have_enough(world: World) -> None:
    away = Lane("ap-south-1", 0, COUNTER)
    gates = Gates((THERE, away, HERE), SEATS, B)
    world.tables[B].answer(Put(items.gate_item(replace(world.gate(HERE), lane=away))))  # seen to have most
    assert obtained(world, 10, gates)
    with pytest.raises(OutOfReach, match=r"ap-south-1#0#.* could not be asked"):
        obtained(world, 11, gates)


def test_a_region_that_does_not_answer_is_asked_once_for_all_its_lanes_and_again_after_a_second(world: World) -> None:
    lanes = THERE, HERE, *(Lane(A, shard, COUNTER) for shard in range(1, 8))
    gates = Gates(lanes, SEATS, B)
    asked_there = []

    def silent(request: Request, /) -> Any:
        asked_there.append(request)
        raise Unavailable("No answer.")

    world.tables[A].answer = silent  # type: ignore[method-assign]
    for later_ms, times in ((0, 1), (1_000, 1), (1, 2), (1_000, 2), (1, 3)):
        world.now_ms += later_ms
        with pytest.raises(OutOfReach, match=r"eu-west-1#0#.* could not be asked: .*No answer"):
            obtained(world, 1, gates)
        assert len(asked_there) == times
        assert obtained(world, 0, gates)


def test_a_gate_that_cannot_be_read_does_not_silence_its_region(world: World) -> None:
    second = Lane(A, 1, COUNTER)
    gates = Gates((THERE, HERE, second), SEATS, B)
    item = world.tables[A].items[items.gate_key(HERE)]
    world.tables[A].answer(Put({**item, "total": {"S": "many"}}))
    world.tables[A].answer(Put(items.gate_item(replace(world.gate(THERE), lane=second, rights={UP: 5}))))
    for need in (6, 5):
        if need == 6:
            with pytest.raises(OutOfReach, match="eu-west-1#0#"):
                obtained(world, need, gates)
        else:
            assert obtained(world, need, gates)


def test_what_is_on_its_way_to_a_third_lane_is_taken_over_there_and_is_no_reason_to_refuse(world: World) -> None:
    third = Lane(A, 1, COUNTER)
    gates = Gates((THERE, HERE, third), SEATS, B)
    gate = put(world, HERE, rights={UP: 0}, given={(f"{A}#1", UP): 10, (f"{A}#1", DOWN): 3})
    world.tables[A].answer(Put(items.gate_item(replace(gate, lane=third, given={}))))
    assert obtained(world, 10, gates)
    assert (world.gate(third).rights, world.gate(third).got) == ({UP: 10}, {FROM_HERE: 10})
    assert obtained(world, 10, gates)
    assert world.gate(THERE).rights == {UP: 10}
    assert not obtained(world, 11, gates)
