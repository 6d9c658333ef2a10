"""Design 6, three times: what merging breaks, and what it does not break when it is done by this library."""

from functools import partial

import pytest

from lab.designs.item_collection import ItemCollection, NaiveMerge, Ours
from lab.histories.stage import SETTINGS
from simulator.faults import Faults
from tests.lab.designs.conftest import EU, C, OnWorld, Place, adds, value

PLAIN, MERGED, OURS = ItemCollection(settings=SETTINGS), NaiveMerge(settings=SETTINGS), Ours(settings=SETTINGS)


def test_a_merge_changes_nothing_but_how_it_is_kept(anywhere: Place) -> None:
    for make in adds(MERGED, 120, change=2):
        anywhere.run(make())
    anywhere.run(MERGED.housekeep(C, EU))
    assert value(anywhere, MERGED) == 240
    assert anywhere.run(MERGED.history(C)) == [0]


@pytest.mark.parametrize("design", [MERGED, OURS], ids=lambda design: design.name)
def test_two_merges_at_once_in_one_region_count_nothing_twice(design: ItemCollection) -> None:
    for seed in range(10):
        on_world = OnWorld(seed)
        for make in adds(design, 3):
            on_world.run(make())
        on_world.wait(60_000)
        on_world.at_once(*[partial(design.housekeep, C, EU)] * 3)
        assert value(on_world, design) == 3, seed


@pytest.mark.parametrize(("design", "true"), [(PLAIN, True), (MERGED, False), (OURS, True)])
def test_only_during_a_naive_merge_a_read_sees_half_of_it(design: ItemCollection, true: bool) -> None:
    seen = set()
    for seed in range(20):
        on_world = OnWorld(seed)
        for make in adds(design, 3):
            on_world.run(make())
        on_world.wait(60_000)
        _, *values = on_world.at_once(
            lambda: design.housekeep(C, EU), *[lambda: design.value(C)] * 4, faults=Faults(slow_landing=True)
        )
        seen |= {*values}
    assert (seen == {3}) == true
