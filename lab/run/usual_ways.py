"""The two designs that everybody writes first, from lab/designs: they get the same changes beside ours.

Rule 1: they have the clients of this library, and the SDK sends again what gets no answer, as their authors let it.
Rule 2: their scheduled job works in each Region, on the counters that were added to.
"""

import contextlib
from collections.abc import Iterable
from dataclasses import replace

from lab.designs.atomic import Atomic
from lab.designs.design import Design
from lab.designs.item_collection import NaiveMerge
from lab.run.plan import REGIONS, Plan
from ledger import Change
from ledger.checks import to_ms
from ledger.clocks import wall_clock
from ledger.errors import TableError
from ledger.requests import Instant, Program, Result, run
from ledger.table import DynamoTable


class NaiveWay:
    """One of NAIVE, asked from `place` through the proxy, or at `endpoint`."""

    def __init__(self, plan: Plan, name: str, place: str, endpoint: str | None = None) -> None:
        self.name = name
        settings = plan.settings(REGIONS[0], place, endpoint)
        self._design: Design = Atomic() if name == "atomic ADD" else NaiveMerge(settings=settings)
        own = replace(settings, table=table_name(name))
        self._tables = {region: DynamoTable.of(own, region=region) for region in REGIONS}

    def add(self, change: Change, region: str) -> None:
        """Count a change through `region`. Raises TableError."""
        assert change.idempotency_key is not None
        assert change.at is not None
        self._run(self._design.add(change.counter, change.change, change.idempotency_key, to_ms(change.at)), region)

    def read(self, counter: str, region: str) -> int:
        return self._run(self._design.value(counter), region)

    def housekeep(self, counters: Iterable[str], region: str) -> None:
        for counter in counters:
            with contextlib.suppress(TableError):  # the next run does what this one could not
                self._run(self._design.housekeep(counter, region), region)

    def _run(self, program: Program[Result], region: str) -> Result:
        return run(program, self._tables[region], lambda: Instant(wall_clock(), 0))


def table_name(design: str) -> str:
    return design.lower().replace(" ", "-")
