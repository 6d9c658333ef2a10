"""What each approach says that it can do, and that it cannot do what it does not say."""

import math
from dataclasses import replace
from typing import Any

import pytest

from lab.designs import Approach, every
from lab.histories.history import SETTINGS
from ledger.errors import LedgerError, TokenConflict
from simulator.faults import Faults
from tests.lab.designs.support import EU, US, C, OnWorld, Place, add, adds, deliveries, value

ALL = every(replace(SETTINGS, regions=(EU, US)))
each = pytest.mark.parametrize("approach", ALL, ids=lambda approach: approach.name)
MINUTE_MS, DAY_MS = 60_000, 86_400_000
FAULTS = Faults(lost=150, dropped=50, late=50, throttled=50, crash=50)


def settle(place: Place, approach: Approach) -> None:
    """All that is scheduled is done in both Regions; several times, because some things take several visits."""
    for _ in range(3):
        for region in (EU, US):
            place.run(approach.housekeep(C, region), region)


def limited(approach: Any, ceiling: int) -> Approach:
    made: Approach = replace(approach, ceiling=ceiling)
    return made


def twice(on_world: OnWorld, approach: Approach, wait_ms: int, others: int, housekeeping: bool) -> bool:
    """Whether a change that comes again, after so long and so many others, counts twice."""
    add(on_world, approach, "again")
    for number in range(others):
        add(on_world, approach, f"other-{number}")
    on_world.wait(wait_ms)
    if housekeeping:
        settle(on_world, approach)
    add(on_world, approach, "again")
    settle(on_world, approach)
    return value(on_world, approach) == others + 2


@each
def test_names_are_different(approach: Approach) -> None:
    assert [other.name for other in ALL].count(approach.name) == 1


@each
def test_a_change_is_remembered_as_long_as_it_says_and_no_longer(approach: Approach) -> None:
    memory = approach.claims.memory
    wait_ms = 400 * DAY_MS if math.isinf(memory.ms) else int(memory.ms) - MINUTE_MS
    others = 150 if math.isinf(memory.writes) else int(memory.writes)
    if memory.ms > 0:
        assert not twice(OnWorld(), approach, wait_ms, others, memory.merges)
    if not math.isinf(memory.ms):
        assert twice(OnWorld(), approach, int(memory.ms) + 2 * MINUTE_MS, 0, True)
    if not math.isinf(memory.writes):
        assert twice(OnWorld(), approach, 0, int(memory.writes) + 1, True)
    if not memory.merges:
        assert twice(OnWorld(), approach, MINUTE_MS, 0, True)


@each
def test_another_change_under_a_used_key_is_refused_where_it_says_so(anywhere: Place, approach: Approach) -> None:
    add(anywhere, approach, "k", 1)
    if approach.claims.mismatch:
        with pytest.raises(TokenConflict):
            add(anywhere, approach, "k", 2)
    elif not approach.claims.units:
        add(anywhere, approach, "k", 2)


@each
def test_a_limit_is_kept_where_it_says_so(anywhere: Place, approach: Approach) -> None:
    if approach.claims.limit == "none":
        assert not hasattr(approach, "ceiling")
        return
    outcomes = [add(anywhere, limited(approach, 3), f"key-{number}") for number in range(6)]
    assert outcomes == ["recorded"] * 3 + ["refused"] * 3


@each
def test_only_a_soft_limit_is_passed_by_changes_made_at_once(approach: Approach) -> None:
    passed = False
    for seed in range(5):
        on_world = OnWorld(seed)
        if approach.claims.limit != "none":
            on_world.at_once(*adds(limited(approach, 3), 6), sdk_attempts=4)
            settle(on_world, approach)
            passed |= value(on_world, approach) > 3
    assert passed == (approach.claims.limit == "soft")


@each
def test_two_regions_lose_and_double_nothing_where_it_says_so(approach: Approach) -> None:
    on_world = OnWorld()
    on_world.world.cut.add(US)
    for region in (EU, US):
        for number in range(12):
            add(on_world, approach, f"{region}-{number}", region=region)
    settle(on_world, approach)
    on_world.world.quiesce()
    settle(on_world, approach)
    on_world.world.quiesce()
    values = {value(on_world, approach, region) for region in (EU, US)}
    assert (values == {24}) == approach.claims.regions


@each
def test_every_change_can_be_listed_where_it_says_so(anywhere: Place, approach: Approach) -> None:
    changes = [1, 1, 1] if approach.claims.units else [1, 5, -2]
    for number, change in enumerate(changes):
        add(anywhere, approach, f"key-{number}", change)
    settle(anywhere, approach)
    try:
        listed = sorted(anywhere.run(approach.history(C)))
    except NotImplementedError:
        listed = []
    assert (listed == sorted(changes)) == approach.claims.history


@each
def test_one_write_sets_it_to_0_where_it_says_so(anywhere: Place, approach: Approach) -> None:
    add(anywhere, approach, "k")
    if approach.claims.reset:
        anywhere.run(approach.reset(C))
        assert value(anywhere, approach) == 0
        add(anywhere, approach, "other")
        assert value(anywhere, approach) == 1
    else:
        with pytest.raises(NotImplementedError):
            anywhere.run(approach.reset(C))


@each
def test_what_is_sent_until_it_is_answered_counts_once_only_with_a_memory(approach: Approach) -> None:
    """One Region, no limit, no housekeeping meanwhile; answers lost, writes late, processes that start again."""
    wrong = 0
    for seed in range(12):
        on_world = OnWorld(seed)
        changes = deliveries(approach, 1 if approach.claims.units else 5)
        told: list[Any] = on_world.at_once(*changes, sdk_attempts=approach.sdk_attempts, faults=FAULTS)
        assert not any(isinstance(answer, LedgerError | None) for answer in told)
        on_world.world.quiesce()
        settle(on_world, approach)
        wrong += value(on_world, approach) != sum(4**number for number in range(len(changes)))
    assert (wrong > 0) == (approach.claims.memory.ms == 0 or approach.claims.memory.writes == 0)
