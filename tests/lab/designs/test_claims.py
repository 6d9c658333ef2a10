"""What each design says that it can do, and that it cannot do what it does not say: one table of claims."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from lab.designs import Claims, Design, every
from lab.histories.stage import SETTINGS
from ledger.errors import LedgerError, TokenConflict
from simulator.faults import Faults
from tests.lab.designs.conftest import EU, START_MS, US, C, OnWorld, add, settle, until_answered, value

DESIGNS = every(replace(SETTINGS, regions=(EU, US)))
MINUTE_MS, DAY_MS = 60_000, 86_400_000
FAULTS = Faults(lost=150, dropped=50, late=50, throttled=50, crash=50)


def limited(design: Any, ceiling: int) -> Any:
    return replace(design, ceiling=ceiling)


def refuses_another(world: OnWorld, design: Design) -> bool:
    """Another change under a used key; a design that counts things has no other change."""
    add(world, design, "k", 1)
    try:
        add(world, design, "k", 1 if design.claims.units else 2)
    except TokenConflict:
        return True
    return False


def keeps_a_ceiling(world: OnWorld, design: Design) -> bool:
    if not hasattr(design, "ceiling"):
        return False
    return [add(world, limited(design, 3), f"key-{n}") for n in range(6)] == ["recorded"] * 3 + ["refused"] * 3


def lists(world: OnWorld, design: Design) -> bool:
    changes = [1, 1, 1] if design.claims.units else [1, 5, -2]
    for number, change in enumerate(changes):
        add(world, design, f"key-{number}", change)
    settle(world, design)
    try:
        return sorted(world.run(design.history(C))) == sorted(changes)
    except NotImplementedError:
        return False


def resets(world: OnWorld, design: Design) -> bool:
    add(world, design, "k")
    try:
        world.run(design.reset(C))
    except NotImplementedError:
        return False
    emptied = value(world, design)
    add(world, design, "other")
    return (emptied, value(world, design)) == (0, 1)


def passes_a_ceiling_at_once(_: OnWorld, design: Design) -> bool:
    passed = False
    for seed in range(5 if hasattr(design, "ceiling") else 0):
        world, tight = OnWorld(seed), limited(design, 3)
        world.at_once(*(partial(tight.add, C, 1, f"key-{n}", START_MS) for n in range(6)), sdk_attempts=4)
        settle(world, tight)
        passed |= value(world, tight) > 3
    return passed


def loses_nothing_in_two_regions(world: OnWorld, design: Design) -> bool:
    world.world.cut.add(US)
    for region in (EU, US):
        for number in range(12):
            add(world, design.of(region, (EU, US)), f"{region}-{number}", region=region)
    for _ in ("each Region", "what came from the other"):
        settle(world, design)
        world.world.quiesce()
    return {value(world, design, region) for region in (EU, US)} == {24}


def is_exact_until_answered(_: OnWorld, design: Design) -> bool:
    """One Region, no housekeeping meanwhile; answers lost, writes late, processes that start again."""
    wrong = 0
    for seed in range(12):
        world, changes = OnWorld(seed), [4**n for n in range(1 if design.claims.units else 5)]
        calls = [partial(until_answered, design, change, str(change)) for change in changes]
        ends: list[Any] = world.at_once(*calls, sdk_attempts=design.sdk_attempts, faults=FAULTS)
        assert not any(isinstance(end, LedgerError | None) for end in ends)
        world.world.quiesce()
        settle(world, design)
        wrong += value(world, design) != sum(changes)
    return not wrong


def counts_twice(design: Design, wait_ms: float, others: float, housekeeping: bool = True) -> bool:
    """A change that comes again after so long and so many others."""
    world = OnWorld()
    add(world, design, "again")
    for number in range(int(others)):
        add(world, design, f"other-{number}")
    world.wait(int(wait_ms))
    if housekeeping:
        settle(world, design)
    add(world, design, "again")
    settle(world, design)
    return value(world, design) == others + 2


def remembers_so_long_and_no_longer(_: OnWorld, design: Design) -> bool:
    memory, forgets = design.claims.memory, []
    if not math.isinf(memory.ms):
        forgets.append(counts_twice(design, memory.ms + 2 * MINUTE_MS, 0))
    if not math.isinf(memory.writes):
        forgets.append(counts_twice(design, 0, memory.writes + 1))
    if not memory.merges:
        forgets.append(counts_twice(design, MINUTE_MS, 0))
    if memory.ms == 0:
        return all(forgets)
    longest_ms = 400 * DAY_MS if math.isinf(memory.ms) else memory.ms - MINUTE_MS
    most = 150 if math.isinf(memory.writes) else memory.writes
    return all(forgets) and not counts_twice(design, longest_ms, most, memory.merges)


Claim = tuple[str, Callable[[OnWorld, Design], bool], Callable[[Claims], bool]]
CLAIMS: list[Claim] = [  # what it is, whether it is so, whether the design says so
    ("another change under a used key is refused", refuses_another, lambda claims: claims.mismatch),
    ("a ceiling holds, one after another", keeps_a_ceiling, lambda claims: claims.limit != "none"),
    ("every change can be listed", lists, lambda claims: claims.history),
    ("one write resets it", resets, lambda claims: claims.reset),
    ("a ceiling is passed at once", passes_a_ceiling_at_once, lambda claims: claims.limit == "soft"),
    ("two Regions", loses_nothing_in_two_regions, lambda claims: claims.regions),
    ("its memory", remembers_so_long_and_no_longer, lambda claims: True),
]


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_a_design_does_what_it_claims_and_nothing_besides(design: Design) -> None:
    for what, is_so, claimed in CLAIMS:
        assert is_so(OnWorld(), design) == claimed(design.claims), what
    if design.claims.survives_death:  # what another one does is in test_faults.py
        assert is_exact_until_answered(OnWorld(), design) == design.is_exact


def test_every_name_stands_for_one_design() -> None:
    assert len({design.name for design in DESIGNS}) == len(DESIGNS)
