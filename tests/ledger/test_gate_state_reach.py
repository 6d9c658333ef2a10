"""How a process reaches the gates of a counter: what it asks, where, and what it remembers."""

from dataclasses import replace

import pytest

import ledger.items
from ledger import Settings
from ledger.conditions import Absent
from ledger.errors import LimitReached
from ledger.gate import items
from ledger.gate.decide import add
from ledger.gate.gates import Gates
from ledger.requests import At, Get, GetMany, Put, Query, Request
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
    world.run(add(replace(world.gates(region), lanes=lanes), world.delta(1)), region)
    asked = world.tables[region].asked
    others = [GetMany((items.gate_key(THERE),))] if THERE in lanes else []
    needed: list[Request] = [
        Query(items.past_pk(HERE), limit=1),
        *others,
        Query(ledger.items.delta_pk(HERE), limit=1),
        Get(ledger.items.checkpoint_key(HERE)),
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
