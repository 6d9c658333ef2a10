"""A design at work in a new table of a real engine, by a clock that its caller sets.

Rule 1: What a design asks goes through `ledger.table`, as everywhere.
Rule 2: Nothing is counted here: meters and counters are attached to `client`.
Rule 3: The engine is the caller's, who starts one and gives it to all that is measured.
"""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from botocore.config import Config

from lab.designs import Design, Outcome, every
from lab.designs.clients import config, table_of
from lab.designs.item_collection import Gathered, Packed
from lab.designs.powertools import Powertools
from lab.designs.transaction_marker import TransactionMarker
from lab.designs.with_limit import Limited, LimitedGathered
from lab.engines.dynamodb_local import VERSION, DynamoDBLocal, installed
from lab.engines.ministack import Engine
from ledger.errors import LedgerError
from ledger.gather import Gatherer
from ledger.requests import Instant, Item, Program, Result, run
from ledger.settings import Settings
from ledger.values import Delta, Receipt

READ_TIMEOUT_S = 60  # on a busy machine an engine is slow; no request is sent twice for that
REGION = "eu-west-1"
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
    """One design in a table of its own."""

    def __init__(self, engine: Engine, design: Design) -> None:
        self.design = design
        self.now_ms = START_MS
        self.client = engine.client(REGION, config(design.sdk_attempts).merge(Config(read_timeout=READ_TIMEOUT_S)))
        self.name = f"compared-{next(_numbers)}"
        engine.create_table(self.name, REGION, self.client)
        self._table = table_of(self.name, self.client)
        self._gatherer = Gatherer(self._put_together)

    def run(self, program: Program[Result]) -> Result:
        return run(program, self._table, lambda: Instant(self.now_ms, 0))

    def add(self, counter: str, change: int, key: str) -> Outcome:
        """A change that is asked for now."""
        if isinstance(self.design, Gathered | LimitedGathered):
            return self._gatherer.add(self.design.delta(counter, change, key, self.now_ms)).outcome
        return self.run(self.design.add(counter, change, key, self.now_ms))

    def add_together(self, changes: Sequence[tuple[str, int, str]]) -> None:
        """Changes (counter, change, key) that are asked for now, at once where the design has a way to."""
        if not isinstance(self.design, Packed):
            for each in changes:
                self.add(*each)
            return
        for outcome in self._put_together([self.design.delta(*each, self.now_ms) for each in changes]):
            if isinstance(outcome, LedgerError):
                raise outcome

    def _put_together(self, deltas: Sequence[Delta]) -> Sequence[Receipt | LedgerError]:
        if not isinstance(self.design, Packed | Limited):
            raise TypeError(f"{self.design.name} puts nothing together")
        return self.run(self.design.put(deltas))

    def value(self, counter: str) -> int:
        return self.run(self.design.value(counter))

    def housekeep(self, counter: str, after_ms: int = SETTINGS.allowed_lateness_ms) -> None:
        """One visit of the design's scheduled work, so much later."""
        self.now_ms += after_ms + 1
        if not isinstance(self.design, TransactionMarker | Powertools):  # a time to live is the table's own work
            self.run(self.design.housekeep(counter, REGION))

    def expire(self, keep_ms: int) -> None:
        """A time to live passes."""
        self.now_ms += keep_ms + 2_000
        self.run(self.design.housekeep("", REGION))

    def everything(self) -> Iterator[Item]:
        """Every item of its table."""
        pages: Any = self.client.get_paginator("scan")
        for page in pages.paginate(TableName=self.name, ConsistentRead=True):
            yield from page["Items"]
