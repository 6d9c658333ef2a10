"""A design at work in new tables of a real engine, by a clock that its caller sets.

Rules: what a design asks goes through `lab.designs.table`, as everywhere; nothing is counted here: meters and
counters are attached to `client`; the engine is the caller's, who starts one and gives it to all that is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from botocore.config import Config

from lab.designs import Design, Outcome, every
from lab.designs.table import ApproachTable, config
from lab.designs.transaction_marker import TransactionMarker
from lab.designs.writes import Program, Result
from lab.engines.dynamodb_local import DynamoDBLocal
from lab.engines.maven import VERSION, installed
from lab.engines.ministack import Engine
from ledger.requests import Instant, Item, run
from ledger.settings import Settings

READ_TIMEOUT_S = 60
"""On a busy machine an engine is slow; no request is sent twice for that."""

REGION, MARKERS = "eu-west-1", "markers"
START_MS = 1_800_000_000_000
SETTINGS = Settings(table="compared", region=REGION, clean_units_per_s=10**9)  # deletes at the engine's own pace
DESIGNS = every(SETTINGS)
_numbers = count()


def new_engine() -> Engine:
    """DynamoDB Local where `make contract` has got it, else MiniStack; not started."""
    return DynamoDBLocal() if installed() else Engine()


def name_of(engine: Engine) -> str:
    return f"DynamoDB Local {VERSION}" if isinstance(engine, DynamoDBLocal) else "MiniStack"


class Trial:
    """One design in tables of its own."""

    def __init__(self, engine: Engine, design: Design) -> None:
        self.design = design
        self.now_ms = START_MS
        self.client = engine.client(REGION, config(design.sdk_attempts).merge(Config(read_timeout=READ_TIMEOUT_S)))
        self.name = f"compared-{next(_numbers)}"
        self._markers = f"{self.name}-{MARKERS}"
        for table in (self.name, self._markers):
            engine.create_table(table, REGION, self.client)
        self._table = ApproachTable(self.name, REGION, self.client, others={MARKERS: self._markers})

    def run(self, program: Program[Result], table: ApproachTable | None = None) -> Result:
        return run(program, table or self._table, lambda: Instant(self.now_ms, 0))

    def add(self, counter: str, change: int, key: str) -> Outcome:
        """A change that is asked for now."""
        return self.run(self.design.add(counter, change, key, self.now_ms))

    def value(self, counter: str) -> int:
        return self.run(self.design.value(counter))

    def housekeep(self, counter: str, after_ms: int = SETTINGS.allowed_lateness_ms) -> None:
        """One visit of the design's scheduled work, so much later."""
        self.now_ms += after_ms + 1
        self.run(self.design.housekeep(counter, REGION))

    def expire(self, marker: TransactionMarker) -> None:
        """The markers' time to live passes."""
        self.now_ms += (marker.keep_ms or 0) + 1_000
        self.run(marker.housekeep("", REGION), ApproachTable(self._markers, REGION, self.client))

    def everything(self) -> Iterator[Item]:
        """Every item of its tables."""
        pages: Any = self.client.get_paginator("scan")
        for table in (self.name, self._markers):
            for page in pages.paginate(TableName=table, ConsistentRead=True):
                yield from page["Items"]
