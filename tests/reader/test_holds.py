"""The open holds of a counter that are read together are those that a look for each one finds."""

import random
from collections.abc import Iterator
from datetime import timedelta

import pytest

from lab.histories.stage.filing import SHIPPED, Filing, filed_as
from ledger import Hold, Limit
from ledger.core.errors import HoldEnded, LimitReached
from ledger.core.requests import GetMany, Query
from ledger.core.values import Delta
from ledger.gate.past import find
from tests.world import A, B, World

SHELF = "shelf:1"
EAGER = Filing(unit_bytes=1, enough=1, beside=0, draw=1, holds_beside=1, holds_left=0)


@pytest.fixture(params=[SHIPPED, EAGER], ids=["in-the-gate", "filed-at-once"], autouse=True)
def _filing(request: pytest.FixtureRequest) -> Iterator[None]:
    with filed_as(request.param):
        yield


def shop() -> World:
    """A counter with three lanes in each of two Regions."""
    limits = {"shelf:": Limit(ceiling=500, region=A)}
    return World(limits=limits, shards={"shelf:": 3}, unshared_limits=True)


def open_alone(world: World, held: Delta) -> bool:
    """What a look for one hold, strongly at its home, says of it."""
    region = held.lane.region
    decision, _ = world[region].run(find(world.gates(SHELF, region), held.lane, held.token))
    return decision is not None and decision.held is not None


@pytest.mark.parametrize("seed", range(8))
def test_the_open_holds_are_those_that_a_look_for_each_finds(seed: int) -> None:
    world, drawn = shop(), random.Random(seed)
    world.entropy = random.Random(seed).randbytes  # so that a seed has as many open holds each time
    granted: list[Hold] = []
    for _ in range(150):
        world.now_ms += drawn.randrange(1, 3_000)
        ledger = world.ledger(drawn.choice((A, B)))
        try:
            match drawn.randrange(5):
                case 0 if granted:
                    held = drawn.choice(granted)
                    ledger.capture(held, drawn.randrange(held.amount + 1))
                case 1 if granted:
                    ledger.release(drawn.choice(granted))
                case 2:
                    ledger.add(SHELF, drawn.randrange(-2, 30))
                case _:
                    lasts = timedelta(seconds=drawn.choice((5, 60, 3_600)))
                    granted.append(ledger.hold(SHELF, drawn.randrange(1, 9), expires=lasts))
        except (HoldEnded, LimitReached):
            pass
    found = {hold.delta for hold in world.reader().holds(SHELF)}
    assert found == {hold.delta for hold in granted if open_alone(world, hold.delta)}
    assert len(found) > 10


def test_a_region_is_asked_once_for_the_gates_of_its_lanes() -> None:
    world = shop()
    for region in (A, B):
        for _ in range(40):
            world.now_ms += 1_000
            world.ledger(region).hold(SHELF, 1, expires=timedelta(hours=1))
    for region in (A, B):
        world[region].asked.clear()
    assert len(world.reader().holds(SHELF)) == 80
    for region in (A, B):
        gates = [asked for asked in world[region].asked if isinstance(asked, GetMany)]
        assert [len(asked.keys) for asked in gates] == [3]
        notes = [asked for asked in world[region].asked if isinstance(asked, Query)]
        assert len([asked for asked in notes if asked.pk.startswith("hold#")]) == 3
