"""How rights come to a lane that has too few: how much is given, what is taken over, and what
that asks of whom.
"""

from dataclasses import replace
from typing import Any

import pytest

from ledger.core import tokens
from ledger.core.errors import OutOfReach, TableMissing, Unavailable
from ledger.core.limit import UP
from ledger.core.requests import At, GetMany, Now, Pause, Update
from ledger.core.values import Delta, Lane
from ledger.gate import items
from ledger.gate.gate import Gate
from ledger.gate.gates import Gates
from ledger.gate.left import Left
from ledger.gate.move import obtain
from ledger.gate.set_limit import set_limit
from tests.ledger.seats import COUNTER, GATE, HERE, SEATS, THERE, TO_THERE, Gated, at
from tests.world import A, B, fail

MANY = 10**9
SECOND = Lane(A, 1, COUNTER)
START = ["here Get", "here Query", "here GetMany"]


@pytest.fixture
def world() -> Gated:
    """Ten seats, and a gate in each Region."""
    world = Gated()
    world.sell(0)
    world.sell(0, THERE)
    return world


def obtained(
    world: Gated, need: int, *lanes: Lane, gates: Gates | None = None, **given: int
) -> bool:
    """Whether the first of these lanes, or that there, may have enough now."""
    world.away.asked.clear()
    named = gates or (Gates(lanes, SEATS, B) if lanes else world.gates(COUNTER, B))
    return lacking(world, named, need, **given) is None


def lacking(world: Gated, gates: Gates, need: int, **given: int) -> Left | None:
    """What all lanes together have left, where that is too little."""
    return world.away.run(obtain(gates, gates.lanes[0], UP, need, **given))


def steps(world: Gated) -> list[str]:
    """What a process there asked, in order: the home of what it is of, and the kind of request."""
    made = [
        ("there", each.request) if isinstance(each, At) else ("here", each)
        for each in world.away.asked
    ]
    return [
        f"{home} {type(request).__name__}" for home, request in made if not isinstance(request, Now)
    ]


def store(world: Gated, seen: Gate, lane: Lane, *regions: str, **changed: Any) -> None:
    """A gate like another one, in a lane, as some Regions see it."""
    for region in regions or (lane.region,):
        world[region].store([items.gate_item(replace(seen, lane=lane, **changed))])


def test_a_giver_keeps_in_proportion_to_both_lanes_pace() -> None:
    for giver, taker, given in (
        ((), (), MANY / 2),
        # three in a second, and the second that is not seen: 1.5 a second, and 1
        ((0, 500, 1_000), (), MANY / 3.5),
        ((), (0, 500, 1_000), MANY * 2.5 / 3.5),
        ((7_000,), (0, 1_000), MANY * 2 / 4),
        ((0, 19_000), (0,), MANY * 2 / 3.1),
    ):
        world = Gated()
        for lane, times, rights in ((HERE, giver, MANY), (THERE, taker, 0)):
            world.sell(0, lane)
            world.put(lane, rights={UP: rights}, recent={at(ms): 0 for ms in times})
        assert obtained(world, 1)
        assert world.gate().given == {TO_THERE: int(given)}
        assert (world.gate().rights, world.gate(THERE).rights) == (
            {UP: MANY - int(given)},
            {UP: int(given)},
        )


def test_rights_to_an_unknown_lane_are_neither_taken_nor_refused(
    world: Gated,
) -> None:
    """The process learns which lane it does not know, in one round."""
    world.put(rights={UP: 0}, given={("ap-south-1#0", UP): 10})
    for lane in (HERE, THERE):
        world.home.asked.clear()
        with pytest.raises(
            OutOfReach, match=r"ap-south-1#0, which they do not know.* Nothing was decided"
        ):
            world.sell(1, lane)
        assert len(world.home.kinds) < 10
    world.put(rights={UP: 1})
    assert (world.sell(1), world.gate().value) == (1, 1)


def test_rights_between_known_lanes_arrive_beside_an_unknown_one(
    world: Gated,
) -> None:
    giver = world.put(rights={UP: 0}, given={("ap-south-1#0", UP): 7, (f"{A}#1", UP): 3})
    store(world, giver, SECOND, given={}, got={})
    assert obtained(world, 3, THERE, HERE, SECOND)
    assert obtained(world, 3, THERE, HERE, SECOND)
    with pytest.raises(OutOfReach, match="ap-south-1#0"):
        obtained(world, 4, THERE, HERE, SECOND)


@pytest.mark.parametrize("missing", [TableMissing("No table."), Unavailable("No answer.")])
def test_a_region_without_an_answer_is_asked_once_a_second(
    world: Gated, missing: Exception
) -> None:
    world.home.before(object, fail(missing))
    gates = world.gates(COUNTER, B)
    for after_ms, asks in ((0, True), (1, False), (1_001, True)):
        world.now_ms += after_ms
        world.home.asked.clear()
        with pytest.raises(OutOfReach, match=f"{A}#0#.* did not answer"):
            obtained(world, 1, gates=gates)
        assert bool(world.home.asked) is asks


def test_a_refusal_says_what_all_lanes_have_left(
    world: Gated,
) -> None:
    gates = world.gates(COUNTER, B)
    world.away.asked.clear()
    assert lacking(world, gates, 11) == Left(10, 10)
    assert steps(world) == [*START, "there Get", "there Update", "here Update", "there Query"]
    assert GetMany((GATE,), consistent=False) in world.away.asked
    assert not obtained(world, 11)
    assert steps(world) == [*START, "there Get", "there Query"]
    assert obtained(world, 10)
    assert steps(world) == START[:1]
    world.put(rights={UP: -4})  # owed, since a restore
    world.home.run(set_limit(world.gates(COUNTER), None, 12))
    assert lacking(world, gates, 11) == Left(12, 8)
    world.put(THERE, rights={UP: 0})
    assert lacking(world, gates, 11) == Left(12, 0)
    assert lacking(world, Gates((THERE,), SEATS, B), 1) == Left(10, 0)  # there is no other lane


def test_all_that_is_left_elsewhere_is_taken_if_just_enough(world: Gated) -> None:
    world.put(recent={at(ms): 0 for ms in range(900)})  # so busy that it keeps what is not needed
    world.put(THERE, rights={UP: 1})
    assert obtained(world, 5, pause_ms=7)
    assert steps(world) == [
        *START,
        "here Pause",
        "here Get",
        "there Get",
        "there Update",
        "here Update",
    ]
    assert Pause(7) in world.away.asked
    assert world.gate().given == {TO_THERE: 4}


def test_a_short_lane_waits_up_to_200_ms_before_it_asks_abroad(
    world: Gated,
) -> None:
    for n in range(60):
        world.decide(Delta(HERE, tokens.keyed(COUNTER, f"waits {n}", world.now_ms), 11))
    waits = [each.ms for each in world.asked(Pause)]
    assert len(waits) > 55
    assert 180 < max(waits) < 200
    assert 70 < sum(waits) / len(waits) < 130


def test_lanes_here_are_asked_first_then_the_richest(world: Gated) -> None:
    """Three lanes there, with 4 that are not seen, with 1 and 5; one here, with 1."""
    taker, others = Lane(B, 1, COUNTER), (HERE, SECOND, Lane(A, 2, COUNTER), THERE)
    for lane, has in zip(others, (4, 1, 5, 1), strict=True):
        store(
            world,
            world.gate(),
            lane,
            *({lane.region, B} if lane != HERE else {A}),
            rights={UP: has},
        )
    assert obtained(world, 11, taker, *others, pause_ms=9)
    assert world.asked(Pause, B) == [Pause(9)]
    updated = [each.request if isinstance(each, At) else each for each in world.away.asked]
    keys = [
        each.key
        for each in updated
        if isinstance(each, Update) and each.key != items.gate_key(taker)
    ]
    assert keys == [items.gate_key(others[n]) for n in (3, 2, 1, 0)]


def test_a_lane_with_enough_on_its_way_waits_for_nobody(
    world: Gated,
) -> None:
    giver = world.put(given={TO_THERE: 3})
    for lane in (SECOND, HERE):
        store(world, giver, lane, B)
    assert obtained(world, 3, THERE, SECOND, HERE, pause_ms=9)
    assert steps(world) == [*START, "here Update"]


def test_a_gate_that_cannot_be_read_does_not_silence_its_region(world: Gated) -> None:
    world.home.alter(GATE, total={"S": "many"})
    store(world, world.gate(THERE), SECOND, rights={UP: 5})
    with pytest.raises(OutOfReach, match="eu-west-1#0#"):
        obtained(world, 6, THERE, HERE, SECOND)
    assert obtained(world, 5, THERE, HERE, SECOND)
