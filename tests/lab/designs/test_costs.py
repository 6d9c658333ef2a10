"""The meter knows every request that an approach makes, and the write units in their docstrings are the meter's."""

from collections.abc import Iterator

import pytest

from lab.designs import Approach, every
from lab.designs.table import config, table_of
from lab.engines.ministack import Engine
from lab.histories.history import SETTINGS
from lab.meters.meter import Meter
from ledger.requests import Instant, run
from tests.lab.designs.support import EU, START_MS, C

CHANGES = 4
UNITS = {
    "transaction, client token": (2, 0),
    "transaction, marker": (4, 0),
    "transaction, marker with TTL": (4, 0),
    "item collection, naive merge": (1, 2 + 2 / CHANGES),
    "sharded transaction, marker": (4, 0),
    "gap-free ids": (4, 0),
    "hybrid, best effort and stream": (2, 4),
    "this library": (1, 2 * (2 + 2) / CHANGES),  # commits of 3 and of 1 (fold_max=3)
}
"""Write units of a change, and of the housekeeping after four of them for each; without a name here: 1 and 0."""


@pytest.mark.parametrize("approach", every(SETTINGS), ids=lambda approach: approach.name)
def test_a_change_costs_what_is_said_of_it(engine: Engine, table_names: Iterator[str], approach: Approach) -> None:
    name, meter = next(table_names), Meter()
    client = engine.client(EU, config(approach.sdk_attempts))
    engine.create_table(name, EU, client)
    meter.attach(client)
    table = table_of(name, client)
    for number in range(CHANGES):
        run(approach.add(C, 1, f"key-{number}", START_MS), table, lambda: Instant(START_MS, 0))
    changes = meter.total().write_units / CHANGES
    run(approach.housekeep(C, EU), table, lambda: Instant(START_MS + 60_000, 0))
    run(approach.value(C), table, lambda: Instant(START_MS + 60_000, 0))
    assert (changes, meter.total().write_units / CHANGES - changes) == UNITS.get(approach.name, (1, 0))
