"""Approach 6, three times: what merging breaks, and what it does not break when it is done by this library."""

from functools import partial

import pytest

from lab.designs.item_collection import ItemCollection, NaiveMerge, Ours
from lab.histories.history import SETTINGS
from ledger.errors import TokenConflict
from simulator.faults import Faults
from tests.lab.designs.support import EU, US, C, OnWorld, Place, add, adds, deliveries, value

PLAIN, MERGED, OURS = ItemCollection(settings=SETTINGS), NaiveMerge(settings=SETTINGS), Ours(settings=SETTINGS)
ALL = [PLAIN, MERGED, OURS]
FAULTS = Faults(lost=150, dropped=50, late=50, throttled=50, crash=50)


def merge(place: Place, approach: ItemCollection) -> None:
    for region in (EU, US):
        place.run(approach.housekeep(C, region), region)


@pytest.mark.parametrize("approach", ALL, ids=lambda approach: approach.name)
def test_a_change_counts_once_and_another_under_its_key_is_refused(anywhere: Place, approach: ItemCollection) -> None:
    assert [add(anywhere, approach, key, 5) for key in "aba"] == ["recorded", "recorded", "replayed"]
    with pytest.raises(TokenConflict):
        add(anywhere, approach, "a", 6)
    assert value(anywhere, approach) == 10


def test_a_merge_changes_nothing_but_how_it_is_kept(anywhere: Place) -> None:
    for make in adds(MERGED, 120, change=2):
        anywhere.run(make())
    anywhere.run(MERGED.housekeep(C, EU))
    assert value(anywhere, MERGED) == 240
    assert anywhere.run(MERGED.history(C)) == [0]


@pytest.mark.parametrize(("approach", "counted"), [(PLAIN, 5), (MERGED, 10), (OURS, 5)])
def test_only_under_the_naive_merge_a_change_that_comes_again_counts_twice(
    on_world: OnWorld, approach: ItemCollection, counted: int
) -> None:
    add(on_world, approach, "a", 5)
    on_world.wait(60_000)
    on_world.run(approach.housekeep(C, EU))
    add(on_world, approach, "a", 5)
    on_world.run(approach.housekeep(C, EU))
    assert value(on_world, approach) == counted


@pytest.mark.parametrize("approach", [PLAIN, OURS], ids=lambda approach: approach.name)
def test_what_is_sent_until_it_is_answered_counts_once(approach: ItemCollection) -> None:
    for seed in range(10):
        on_world = OnWorld(seed)
        told = on_world.at_once(*deliveries(approach), lambda: approach.housekeep(C, EU), faults=FAULTS)
        assert {*told[:-1]} <= {"recorded", "replayed"}
        on_world.world.quiesce()
        assert value(on_world, approach) == sum(4**n for n in range(6)), seed


@pytest.mark.parametrize(("approach", "exact"), [(PLAIN, True), (MERGED, False), (OURS, True)])
def test_only_the_naive_merge_loses_or_doubles_what_two_regions_merge_at_once(
    approach: ItemCollection, exact: bool
) -> None:
    sums = set()
    for seed in range(10):
        on_world = OnWorld(seed)
        add(on_world, approach, "a", 1)
        add(on_world, approach, "b", 4, US)
        on_world.world.quiesce()
        on_world.world.cut.add(US)
        add(on_world, approach, "c", 16)
        on_world.wait(60_000)
        merge(on_world, approach)
        on_world.world.quiesce()
        sums |= {value(on_world, approach, region) for region in (EU, US)}
    assert (sums == {21}) == exact


@pytest.mark.parametrize("approach", [MERGED, OURS], ids=lambda approach: approach.name)
def test_two_merges_at_once_in_one_region_count_nothing_twice(approach: ItemCollection) -> None:
    for seed in range(10):
        on_world = OnWorld(seed)
        for make in adds(approach, 3):
            on_world.run(make())
        on_world.wait(60_000)
        on_world.at_once(*[partial(approach.housekeep, C, EU)] * 3)
        assert value(on_world, approach) == 3, seed


@pytest.mark.parametrize(("approach", "true"), [(PLAIN, True), (MERGED, False), (OURS, True)])
def test_only_during_a_naive_merge_a_read_sees_half_of_it(approach: ItemCollection, true: bool) -> None:
    seen = set()
    for seed in range(20):
        on_world = OnWorld(seed)
        for make in adds(approach, 3):
            on_world.run(make())
        on_world.wait(60_000)
        _, *values = on_world.at_once(
            lambda: approach.housekeep(C, EU), *[lambda: approach.value(C)] * 4, faults=Faults(slow_landing=True)
        )
        seen |= {*values}
    assert (seen == {3}) == true
