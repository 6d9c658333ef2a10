"""What each design says that it can do, and that it cannot do what it does not say: ceilings, and what becomes of its
changes in each scenario of the comparison.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from lab.designs import Design, Outcome, every
from lab.designs.simulated import Simulated, Task
from lab.measure.compare import FOLDED
from lab.measure.one_counter import EU, SCENARIOS, START_MS, C, Scenario, count
from ledger.requests import Program, Result
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
        """Their steps in any order."""
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


def keeps_a_ceiling(world: OnWorld, design: Design) -> bool:
    if not hasattr(design, "ceiling"):
        return False
    return [world.add(limited(design, 3), f"key-{n}") for n in range(6)] == ["recorded"] * 3 + ["refused"] * 3


def passes_a_ceiling_at_once(design: Design) -> bool:
    passed = False
    for seed in range(5 if hasattr(design, "ceiling") else 0):
        world, tight = OnWorld(seed), limited(design, 3)
        world.at_once(*(partial(tight.add, C, 1, f"key-{n}", START_MS) for n in range(6)))
        world.settle(tight)
        passed |= world.value(tight) > 3
    return passed


def is_right(design: Design, scenario: Scenario) -> bool:
    """Whether the design says that each change counts once."""
    memory = design.claims.memory
    if len(scenario.regions) > 1:
        return design.claims.regions
    if scenario.again_ms is not None:
        return memory.ms > scenario.again_ms and memory.writes > scenario.others and memory.merges
    is_exact = design.claims.survives_death and memory.ms > 0 and memory.writes > 0 and memory.merges
    return is_exact or not (scenario.dies or scenario.faults.lost)


RARE = ("no reply", "Regions", "failover")
"""In one seed of these, not every design is wrong that may be."""


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_a_design_does_what_it_claims_and_nothing_besides(design: Design) -> None:
    assert keeps_a_ceiling(OnWorld(), design) == (design.claims.limit != "none")
    assert passes_a_ceiling_at_once(design) == (design.claims.limit == "soft")
    for scenario in SCENARIOS:
        found = count(design, scenario, 0)
        if is_right(design, scenario):
            assert (found.lost, found.doubled, found.gave_up) == (0, 0, 0), scenario.name
            if design.claims.regions:
                assert (found.false, found.missed) == (0, 0), scenario.name
        elif scenario.name not in RARE:
            assert found.lost + found.doubled, scenario.name
