"""What each design says that it can do, and that it cannot do what it does not say: one table of
claims, and what becomes of its changes in each scenario of the comparison.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from lab.designs import Claims, Design, Outcome, every
from lab.designs.hybrid import THING, Hybrid
from lab.designs.simulated import Simulated, Task
from lab.designs.string_set import StringSet
from lab.measure.compare import FOLDED
from lab.measure.one_counter import EU, SCENARIOS, START_MS, C, Scenario, count
from ledger.core.errors import TokenConflict
from ledger.core.requests import Key, Program, Result, keyed
from simulator.choices import Drawn
from simulator.world import World

DESIGNS = every(FOLDED)


class OnWorld:
    """A simulated table, and what is tried on it one after another or at once."""

    def __init__(self, seed: int = 0) -> None:
        self.world = World((EU,), Drawn(seed), page_size=100, lag_steps=0)
        self.world.now_ms = START_MS
        self._simulated = Simulated(self.world)

    def run(self, program: Program[Result]) -> Result:
        return self._simulated.run(program, EU)

    def at_once(self, *programs: Callable[[], Program[Any]]) -> None:
        """Their steps in any order, each sent again as an SDK does."""
        self._simulated.play([Task(EU, program, sdk_attempts=4) for program in programs])

    def add(self, design: Design, key: str, change: int = 1) -> Outcome:
        return self.run(design.add(C, change, key, START_MS))

    def value(self, design: Design) -> int:
        return self.run(design.value(C))

    def settle(self, design: Design) -> None:
        """All that is scheduled is done; several times, because some things take several visits."""
        for _ in range(3):
            self.run(design.housekeep(C, EU))


def limited(design: Any, ceiling: int) -> Any:
    return replace(design, ceiling=ceiling)


def refuses_another(world: OnWorld, design: Design) -> bool:
    """Another change under a used key; a design that counts things has no other change."""
    world.add(design, "k", 1)
    try:
        world.add(design, "k", 1 if design.claims.units else 2)
    except TokenConflict:
        return True
    return False


def keeps_a_ceiling(world: OnWorld, design: Design) -> bool:
    if not hasattr(design, "ceiling"):
        return False
    tried = [world.add(limited(design, 10), f"key-{n}") for n in range(13)]
    return tried == ["recorded"] * 10 + ["refused"] * 3


def lists(world: OnWorld, design: Design) -> bool:
    changes = [1, 1, 1] if design.claims.units else [1, 5, -2]
    for number, change in enumerate(changes):
        world.add(design, f"key-{number}", change)
    world.settle(design)
    try:
        return sorted(world.run(design.history(C))) == sorted(changes)
    except NotImplementedError:
        return False


def passes_a_ceiling_at_once(_: OnWorld, design: Design) -> bool:
    passed = False
    for seed in range(5 if hasattr(design, "ceiling") else 0):
        world, tight = OnWorld(seed), limited(design, 3)
        world.at_once(*(partial(tight.add, C, 1, f"key-{n}", START_MS) for n in range(6)))
        world.settle(tight)
        passed |= world.value(tight) > 3
    return passed


Claim = tuple[str, Callable[[OnWorld, Design], bool], Callable[[Claims], bool]]
CLAIMS: list[Claim] = [  # what it is, whether it is so, whether the design says so
    ("another change under a used key is refused", refuses_another, lambda claims: claims.mismatch),
    ("a ceiling holds, one after another", keeps_a_ceiling, lambda claims: claims.limit != "none"),
    ("every change can be listed", lists, lambda claims: claims.history),
    (
        "a ceiling is passed at once",
        passes_a_ceiling_at_once,
        lambda claims: claims.limit == "soft",
    ),
]


def is_right(design: Design, scenario: Scenario) -> bool:
    """Whether the design says that each change counts once."""
    memory = design.claims.memory
    if len(scenario.regions) > 1:
        return design.claims.regions
    if scenario.again_ms is not None:
        return memory.ms > scenario.again_ms and memory.writes > scenario.others and memory.merges
    is_exact = (
        design.claims.survives_death and memory.ms > 0 and memory.writes > 0 and memory.merges
    )
    return is_exact or not (scenario.dies or scenario.faults.lost)


RARE = ("no reply", "Regions", "failover")
"""In one seed of these, not every design is wrong that may be."""


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_a_design_does_what_it_claims_and_nothing_besides(design: Design) -> None:
    for what, is_so, claimed in CLAIMS:
        assert is_so(OnWorld(), design) == claimed(design.claims), what
    for scenario in SCENARIOS:
        found = count(design, scenario, 0)
        if is_right(design, scenario):
            assert (found.lost, found.doubled, found.gave_up) == (0, 0, 0), scenario.name
            if design.claims.regions:
                assert (found.false, found.missed if not scenario.late else 0) == (0, 0), (
                    scenario.name
                )
        elif scenario.name not in RARE:
            assert found.lost + found.doubled, scenario.name


def test_every_name_stands_for_one_design() -> None:
    assert len({design.name for design in DESIGNS}) == len(DESIGNS)


def test_a_set_tells_full_from_duplicate() -> None:
    world, design = OnWorld(), StringSet(ceiling=2)
    assert [world.add(design, key) for key in "aabc"] == [
        "recorded",
        "replayed",
        "recorded",
        "refused",
    ]


@pytest.mark.parametrize("design", [StringSet(), Hybrid()], ids=lambda design: design.name)
def test_what_is_taken_out_counts_no_more_and_is_forgotten(design: Any) -> None:
    world = OnWorld()
    assert [world.add(design, key) for key in "ab"] == ["recorded"] * 2
    world.settle(design)
    removed = [world.run(design.remove(C, key)) for key in ("a", "a", "never")]
    assert removed == ["recorded", "replayed", "replayed"]
    world.settle(design)
    assert world.value(design) == 1
    assert world.run(design.remove(C, "b")) == "recorded"
    world.settle(design)
    assert world.value(design) == 0
    assert world.add(design, "a") == "recorded"  # a late retry
    world.settle(design)
    assert world.value(design) == 1


@pytest.mark.parametrize("seed", range(20))
def test_a_things_records_take_it_from_the_count_once(seed: int) -> None:
    world, design = OnWorld(seed), Hybrid()
    for key in "ab":
        world.add(design, key)
    world.run(design.remove(C, "a"))
    records = [partial(design.consume, keyed(Key(f"{THING}{C}", key))) for key in "aabb"]
    world.at_once(*records)
    world.settle(design)
    assert (world.value(design), world.run(design.at_most(C))) == (1, 1)
    world.run(design.remove(C, "b"))
    world.settle(design)
    assert world.run(design.at_most(C)) == 0
