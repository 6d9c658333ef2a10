"""A design at work in a table, by a clock that its caller sets.

Rule 1: Nothing is counted here: a table that counts what it is asked is the caller's.
Rule 2: The engine is the caller's, who starts one and gives it to all that is measured.
"""

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from botocore.config import Config

from lab.designs import Design, Outcome, every
from lab.designs.item_collection import Packed
from lab.designs.with_limit import Limited
from lab.engines.ministack import Engine
from ledger import Ledger
from ledger.core.checks import to_datetime
from ledger.core.errors import LedgerError
from ledger.core.limit import Limit
from ledger.core.ranges import CHANGE_MAX
from ledger.core.requests import Instant, Program, Result, Table
from ledger.core.running import run
from ledger.core.settings import Settings
from ledger.tables.boto import CONFIG
from ledger.tables.dynamo import DynamoTable

READ_TIMEOUT_S = 60  # on a busy machine an engine is slow; no request is sent twice for that
REGION = "eu-west-1"
START_MS = 1_800_000_000_000
SETTINGS = Settings(table="compared", region=REGION, clean_units_per_s=10**9)  # nothing waits
DESIGNS = every(SETTINGS)
_numbers = count()


class Trial:
    """One design in a table of its own."""

    def __init__(self, design: Design, table: Table) -> None:
        self.design, self._table = design, table
        self.now_ms = START_MS
        self._gathers: Ledger | None = None
        if isinstance(design, Packed | Limited) and design.gathers:
            limits = (
                {"": Limit(floor=-CHANGE_MAX, region=REGION)} if isinstance(design, Limited) else {}
            )
            settings = replace(design.settings, limits=limits)
            self._gathers = Ledger(settings, gather=True, table=table, clock=lambda: self.now_ms)

    def run(self, program: Program[Result]) -> Result:
        return run(program, self._table, lambda: Instant(self.now_ms, 0))

    def add(self, counter: str, change: int, key: str) -> Outcome:
        """A change that is asked for now."""
        if self._gathers is not None:
            return self._gathers.add(
                counter, change, idempotency_key=key, at=to_datetime(self.now_ms)
            ).outcome
        return self.run(self.design.add(counter, change, key, self.now_ms))

    def add_together(self, changes: Sequence[tuple[str, int, str]]) -> None:
        """Changes (counter, change, key) that are asked for now, at once where the design has a
        way to.
        """
        if not isinstance(self.design, Packed):
            for each in changes:
                self.add(*each)
            return
        for outcome in self.run(
            self.design.put([self.design.delta(*each, self.now_ms) for each in changes])
        ):
            if isinstance(outcome, LedgerError):
                raise outcome

    def value(self, counter: str) -> int:
        return self.run(self.design.value(counter))

    def housekeep(self, counter: str, after_ms: int = SETTINGS.allowed_lateness_ms) -> None:
        """One visit of the design's scheduled work, so much later."""
        self.now_ms += after_ms + 1
        self.run(self.design.housekeep(counter, REGION))


def on_engine(engine: Engine, design: Design) -> Trial:
    """In a new table of the engine. A pause is at most as long as a design asks for."""
    retries: Any = {"mode": "standard", "total_max_attempts": design.sdk_attempts}
    client = engine.client(
        REGION, CONFIG.merge(Config(retries=retries, read_timeout=READ_TIMEOUT_S))
    )
    name = f"compared-{next(_numbers)}"
    engine.create_table(name, REGION, client)
    pause = lambda seconds: time.sleep(seconds * random.random())  # noqa: E731
    return Trial(
        design, DynamoTable(name, REGION, lambda _: client, pause=pause, jitter=lambda: 1.0)
    )
