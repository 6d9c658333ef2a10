"""What each design says that it can do, and that it cannot do what it does not say."""

import math
from dataclasses import replace
from typing import Any

import pytest

from lab.designs import Design, every
from lab.histories.stage import SETTINGS
from ledger.errors import LedgerError, TokenConflict
from simulator.faults import Faults
from tests.lab.designs.conftest import EU, US, C, OnWorld, Place, add, adds, deliveries, value

ALL = every(replace(SETTINGS, regions=(EU, US)))
each = pytest.mark.parametrize("design", ALL, ids=lambda design: design.name)
MINUTE_MS, DAY_MS = 60_000, 86_400_000
FAULTS = Faults(lost=150, dropped=50, late=50, throttled=50, crash=50)


def settle(place: Place, design: Design) -> None:
    """All that is scheduled is done in both Regions; several times, because some things take several visits."""
    for _ in range(3):
        for region in (EU, US):
            place.run(design.housekeep(C, region), region)


def limited(design: Any, ceiling: int) -> Design:
    made: Design = replace(design, ceiling=ceiling)
    return made


def twice(on_world: OnWorld, design: Design, wait_ms: int, others: int, housekeeping: bool) -> bool:
    """Whether a change that comes again, after so long and so many others, counts twice."""
    add(on_world, design, "again")
    for number in range(others):
        add(on_world, design, f"other-{number}")
    on_world.wait(wait_ms)
    if housekeeping:
        settle(on_world, design)
    add(on_world, design, "again")
    settle(on_world, design)
    return value(on_world, design) == others + 2


def test_names_are_different() -> None:
    assert len({design.name for design in ALL}) == len(ALL)


@each
def test_a_change_is_remembered_as_long_as_it_says_and_no_longer(design: Design) -> None:
    memory = design.claims.memory
    wait_ms = 400 * DAY_MS if math.isinf(memory.ms) else int(memory.ms) - MINUTE_MS
    others = 150 if math.isinf(memory.writes) else int(memory.writes)
    if memory.ms > 0:
        assert not twice(OnWorld(), design, wait_ms, others, memory.merges)
    if not math.isinf(memory.ms):
        assert twice(OnWorld(), design, int(memory.ms) + 2 * MINUTE_MS, 0, True)
    if not math.isinf(memory.writes):
        assert twice(OnWorld(), design, 0, int(memory.writes) + 1, True)
    if not memory.merges:
        assert twice(OnWorld(), design, MINUTE_MS, 0, True)


@each
def test_another_change_under_a_used_key_is_refused_where_it_says_so(anywhere: Place, design: Design) -> None:
    add(anywhere, design, "k", 1)
    if design.claims.mismatch:
        with pytest.raises(TokenConflict):
            add(anywhere, design, "k", 2)
    elif not design.claims.units:
        add(anywhere, design, "k", 2)


@each
def test_a_limit_is_kept_where_it_says_so(anywhere: Place, design: Design) -> None:
    if design.claims.limit == "none":
        assert not hasattr(design, "ceiling")
        return
    outcomes = [add(anywhere, limited(design, 3), f"key-{number}") for number in range(6)]
    assert outcomes == ["recorded"] * 3 + ["refused"] * 3


@each
def test_only_a_soft_limit_is_passed_by_changes_made_at_once(design: Design) -> None:
    passed = False
    for seed in range(5):
        on_world = OnWorld(seed)
        if design.claims.limit != "none":
            tight = limited(design, 3)
            on_world.at_once(*adds(tight, 6), sdk_attempts=4)
            settle(on_world, tight)
            passed |= value(on_world, tight) > 3
    assert passed == (design.claims.limit == "soft")


@each
def test_two_regions_lose_and_double_nothing_where_it_says_so(design: Design) -> None:
    on_world = OnWorld()
    on_world.world.cut.add(US)
    for region in (EU, US):
        for number in range(12):
            add(on_world, design.of(region, (EU, US)), f"{region}-{number}", region=region)
    settle(on_world, design)
    on_world.world.quiesce()
    settle(on_world, design)
    on_world.world.quiesce()
    values = {value(on_world, design, region) for region in (EU, US)}
    assert (values == {24}) == design.claims.regions


@each
def test_every_change_can_be_listed_where_it_says_so(anywhere: Place, design: Design) -> None:
    changes = [1, 1, 1] if design.claims.units else [1, 5, -2]
    for number, change in enumerate(changes):
        add(anywhere, design, f"key-{number}", change)
    settle(anywhere, design)
    try:
        listed = sorted(anywhere.run(design.history(C)))
    except NotImplementedError:
        listed = []
    assert (listed == sorted(changes)) == design.claims.history


@each
def test_one_write_sets_it_to_0_where_it_says_so(anywhere: Place, design: Design) -> None:
    add(anywhere, design, "k")
    if design.claims.reset:
        anywhere.run(design.reset(C))
        assert value(anywhere, design) == 0
        add(anywhere, design, "other")
        assert value(anywhere, design) == 1
    else:
        with pytest.raises(NotImplementedError):
            anywhere.run(design.reset(C))


@each
def test_what_is_sent_until_it_is_answered_counts_once_only_with_a_memory(design: Design) -> None:
    """One Region, no limit, no housekeeping meanwhile; answers lost, writes late, processes that start again."""
    wrong = 0
    for seed in range(12):
        on_world = OnWorld(seed)
        changes = deliveries(design, 1 if design.claims.units else 5)
        told: list[Any] = on_world.at_once(*changes, sdk_attempts=design.sdk_attempts, faults=FAULTS)
        assert not any(isinstance(answer, LedgerError | None) for answer in told)
        on_world.world.quiesce()
        settle(on_world, design)
        wrong += value(on_world, design) != sum(4**number for number in range(len(changes)))
    assert (wrong > 0) == (design.claims.memory.ms == 0 or design.claims.memory.writes == 0)
