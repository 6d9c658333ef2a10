"""The meter knows every request that a design makes, and the write units in their docstrings are the meter's."""

import pytest

from lab.designs import Design, every
from lab.designs.trial import Trial
from lab.engines.ministack import Engine
from lab.histories.stage import SETTINGS
from lab.meters.meter import Meter
from tests.lab.designs.conftest import C

CHANGES = 4
UNITS = {
    "transaction, client token": (2, 0),
    "transaction, marker": (4, 0),
    "transaction, marker with TTL": (4, 0),
    "item collection, naive merge": (1, 2 + 2 / CHANGES),
    "sharded transaction, marker": (4, 0),
    "gap-free ids": (4, 0),
    "hybrid, best effort and stream": (2, 4),
    **dict.fromkeys(
        ("this library", "this library, packs", "this library, group commit"),
        (1, (2 * (2 + 2) + 1) / CHANGES),  # each alone; commits of 3 and of 1 (fold_max=3); the lane is listed
    ),
    **dict.fromkeys(
        ("this library, a limit", "this library, a limit, group commit"),
        (1 + 2 / CHANGES, 0),  # the first finds no gate, and makes it
    ),
}
"""Write units of a change, and of the housekeeping after four of them for each; without a name here: 1 and 0."""


@pytest.mark.parametrize("design", every(SETTINGS), ids=lambda design: design.name)
def test_a_change_costs_what_is_said_of_it(engine: Engine, design: Design) -> None:
    trial, meter = Trial(engine, design), Meter()
    meter.attach(trial.client)
    for number in range(CHANGES):
        trial.add(C, 1, f"key-{number}")
    changes = meter.total().write_units / CHANGES
    trial.housekeep(C, after_ms=60_000)
    trial.value(C)
    assert (changes, meter.total().write_units / CHANGES - changes) == UNITS.get(design.name, (1, 0))
