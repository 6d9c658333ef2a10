"""`crossed`: the thresholds of a counter that hold now, by one strong read, whoever publishes
them.
"""

from collections.abc import Mapping

import pytest

from ledger import Limit, Threshold
from ledger.core.checks import to_datetime
from ledger.core.errors import InvalidCounter, SettingsMismatch
from ledger.core.requests import Get, GetMany, Query, Together
from reader import Crossed
from tests.world import COUNTER, A, B, World, reader, refused

SEATS = "seats:gig"
LOW, SOME, MANY = (
    Threshold(below=10, region=B),
    Threshold(below=20, name="some"),
    Threshold(above=100),
)
THRESHOLDS = {
    "stock:": (LOW, SOME, MANY),
    "seats:": (Threshold(of_ceiling=0.9), Threshold(left=5, region=B)),
    "goods:": (Threshold(left=3, name="few"), Threshold(above=50)),
}
LIMITS = {
    "seats:": Limit(ceiling=10, region=A),
    "goods:": Limit(floor=0),
    "goods:free:": Limit(floor=-2, region=A),
}


def world_of(thresholds: Mapping[str, tuple[Threshold, ...]] = THRESHOLDS) -> World:
    return World(limits=LIMITS, thresholds=thresholds, unshared_limits=True)


def holding(
    world: World, counter: str, region: str = A
) -> list[tuple[str, int | None, int | None, int]]:
    return [
        (each.name, each.above, each.below, each.value)
        for each in world.reader(region).crossed(counter)
    ]


def test_thresholds_that_hold_are_answered_in_order() -> None:
    world = world_of()
    world.add(COUNTER, 4)
    now = to_datetime(world.now_ms)
    found = (Crossed("below-10", None, 10, 4, now), Crossed("some", None, 20, 4, now))
    assert world.reader().crossed(COUNTER) == found
    world.replicate()
    assert world.reader(B).crossed(COUNTER) == found
    assert world.reader().crossed("of-none") == ()
    with refused(world.home, InvalidCounter):
        world.reader().crossed("a b")


def test_it_is_one_strong_read_whatever_the_reader_does() -> None:
    home = world_of().home
    kept = reader(
        home, ttl=60, consistent=False, thresholds=THRESHOLDS, limits=LIMITS, unshared_limits=True
    )
    for counter, kinds in ((COUNTER, [GetMany, Together, Query, Query]), (SEATS, [GetMany])):
        kept.value(counter)
        home.asked.clear()
        kept.crossed(counter)
        assert home.kinds == kinds
        assert all(each.consistent for each in home.asked if isinstance(each, GetMany | Query))
    home.asked.clear()
    assert reader(home, thresholds={"stock:": (LOW,)}).crossed("of-none") == ()
    assert home.kinds == [Get]  # of the shape


def test_thresholds_of_a_limit_follow_it_as_it_is_set() -> None:
    world = world_of()
    assert holding(world, SEATS) == []
    world.add(SEATS, 6)
    assert holding(world, SEATS) == [("left-5", 5, None, 6)]
    world.ledger().set_limit(SEATS, ceiling=6)
    assert holding(world, SEATS) == [("of-ceiling-0.9", 5, None, 6), ("left-5", 1, None, 6)]
    assert holding(world, SEATS, B) == []  # nothing has arrived there
    world.replicate()
    assert holding(world, SEATS, B) == holding(world, SEATS)
    world.ledger().set_limit(SEATS, ceiling=100)
    assert holding(world, SEATS) == []
    assert holding(world, "goods:1") == [("few", None, 3, 0)]
    assert holding(world, "goods:free:1") == [("few", None, 1, 0)]
    world.add("goods:1", 3)
    assert holding(world, "goods:1") == []
    skips = world_of({"": (Threshold(left=3), Threshold(above=-1))})
    assert holding(skips, "of-none") == [("above--1", -1, None, 0)]


def test_a_limit_that_the_table_lacks_is_refused() -> None:
    world = World(limits=LIMITS)
    world.shape(limits={})
    with pytest.raises(SettingsMismatch, match="shape lacks"):
        world.reader(thresholds=THRESHOLDS).crossed(SEATS)
