"""What becomes of the events of one counter on the simulator, and of a limit.

Rules: a number follows from the approach, the scenario and the seed alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lab.compare.events import CEILING, EVENTS, Counted, Limit
from lab.compare.scenarios import Scenario
from lab.compare.stage import Stage
from lab.designs.approach import Approach


def count(approach: Approach, scenario: Scenario, seed: int) -> Counted:
    """What becomes of EVENTS events of one counter, and of the scenario's others."""
    stage = Stage(approach, scenario, seed, units=approach.claims.units)
    stage.play(EVENTS)
    return stage.record.ended(stage.values())


def limit(approach: Approach, scenario: Scenario, seed: int) -> Limit | None:
    """EVENTS changes of 1 under a ceiling of CEILING; None: it has no limits."""
    if approach.claims.limit == "none":
        return None
    limited: Any = approach
    stage = Stage(replace(limited, ceiling=CEILING), scenario, seed, units=True)
    stage.play(EVENTS)
    return stage.record.limit(stage.values())
