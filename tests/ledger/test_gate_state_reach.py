"""How a process reaches the gates of a counter: what it asks, where, and what it remembers."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

import ledger.items
from ledger import Settings
from ledger.conditions import Absent
from ledger.errors import GaveUp, LimitReached
from ledger.gate import items
from ledger.gate.bounds import set_limit
from ledger.gate.decide import decide_change
from ledger.gate.gates import Gates
from ledger.limit import DOWN, UP, Limit
from ledger.requests import At, Get, GetMany, Program, Put, Query, Request, Together, Update
from ledger.values import Lane
from tests.ledger import test_gate, test_limits
from tests.ledger.test_gate import HERE, THERE, A, B, World
from tests.ledger.test_limits import LIMITS, SEATS, refused


def test_the_lanes_of_a_process_s_own_region_come_first() -> None:
    for here, other in ((A, B), (B, A)):
        gates = Gates.of(Settings(table="counters", region=here, regions=(A, B), limits=LIMITS), SEATS)
        assert gates is not None
        assert [lane.region for lane in gates.lanes] == [here, other]


@pytest.mark.parametrize("lanes", [(HERE, THERE), (HERE,)])
@pytest.mark.parametrize("region", [A, B])
def test_a_gate_is_made_after_its_home_was_asked_for_the_least_that_shows_that_there_was_none(
    region: str, lanes: tuple[Lane, ...]
) -> None:
    world = World(test_gate.SEATS)
    world.run(decide_change(replace(world.gates(region), lanes=lanes), world.delta(1)), region)
    asked = world.tables[region].asked
    others = [GetMany((items.gate_key(THERE),))] if THERE in lanes else []
    filed = Query(items.past_pk(HERE), limit=1), Query(items.hold_pk(HERE), limit=1)
    folded = GetMany(tuple(map(ledger.items.checkpoint_key, lanes)))
    changes: tuple[Query | GetMany, ...] = (folded, *(Query(ledger.items.delta_pk(lane), limit=1) for lane in lanes))
    needed: list[Request] = [
        Together(filed),
        *(filed if region == A else ()),  # each is asked of the table in memory, too
        *others,
        Together(changes),
        *(changes if region == A else ()),
        Put(items.new_gate(HERE, test_gate.SEATS), Absent()),
    ]
    assert asked[1:-1] == [each if region == A else At(A, each) for each in needed]


def test_what_a_process_releases_in_another_region_is_not_sold_out_to_it() -> None:
    world = test_limits.World()
    world.add(SEATS, 5)
    held = world.hold(5, region=B)
    refused(LimitReached, lambda: world.add(SEATS, 1))
    world.ledgers[A].release(held)
    assert world.add(SEATS, 1).outcome == "recorded"


def test_who_never_comes_before_the_others_gives_up_and_may_ask_the_same_again() -> None:
    world = World(test_gate.SEATS)
    world.add(1)
    table = world.tables[A]
    answer, gate = table.answer, table.items[items.gate_key(HERE)]
    table.answer = lambda request: gate if isinstance(request, Update) else answer(request)  # type: ignore[method-assign]
    programs: list[Program[Any]] = [decide_change(world.gates(A), world.delta(1)), set_limit(world.gates(A), None, 12)]
    for program in programs:
        with pytest.raises(GaveUp, match="The same call again"):
            world.run(program)


def test_a_limit_is_tightened_by_rights_that_are_in_another_lane_and_to_the_ends_of_what_it_may_be() -> None:
    world = World(test_gate.SEATS)
    world.add(1, THERE, B)
    assert world.run(set_limit(world.gates(A), None, 2)).rights[UP] + world.gate(THERE).rights[UP] == 1
    assert world.run(set_limit(world.gates(A), None, 10**18)).bounds[UP] == 10**18
    both = World(Limit(floor=-1, ceiling=1, region=A))
    assert both.run(set_limit(both.gates(A), 0, 0)).bounds == {DOWN: 0, UP: 0}


def test_a_gate_that_another_process_made_meanwhile_is_not_lost_though_another_lane_names_it() -> None:
    world, slow = World(test_gate.SEATS), World(test_gate.SEATS).gates(B).create(THERE)
    world.add(0)
    request, asked = next(slow), list[Request]()
    world.add(1, THERE, B)  # the gate is made there, and given to
    world.tables[B].answer(Put(items.gate_item(world.gate(HERE))))  # which is seen there
    with suppress(StopIteration):
        while True:
            asked.append(request)
            request = slow.send(world.tables[B].answer(request))
    assert asked[-1] == Get(items.gate_key(THERE))
    assert world.gate(THERE).number == 1
