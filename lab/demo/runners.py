"""The designs that the demo runs side by side: ours, and the two that everybody writes first.

Rule 1: each is called with the same events, Regions and faults.
Rule 2: ours is the shipped classes; the others are those of lab/designs, with the SDK's retries.
Rule 3: `Unanswered` means that the caller does not know whether the change was applied; `done` is called when it is
acknowledged.
"""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from mypy_boto3_dynamodb.client import DynamoDBClient

from compactor import Compactor, Report
from lab.designs import Design
from lab.designs.clients import table_of
from lab.designs.design import Sight
from lab.events import Event
from lab.measure.meter import Meter
from ledger import Ledger, Settings
from ledger.checks import to_ms
from ledger.clocks import wall_clock
from ledger.errors import OutcomeUnknown, TableError
from ledger.requests import Instant, Program, Result, Table, run
from reader import Reader

Clients = Mapping[str, "DynamoDBClient"]


class Unanswered(Exception):
    """The request may or may not have been applied."""


class Ours:
    """One delta an event; a compactor in each Region. `values` reads through clients of its own, `bulk`."""

    name = "this library"

    def __init__(
        self, settings: Mapping[str, Settings], writers: Clients, readers: Clients, bulk: Clients, compactors: Clients
    ) -> None:
        self.table = next(iter(settings.values())).table
        self.writes, self.reads = _metered(writers, compactors), _metered(readers, bulk)
        self.report = Report()
        self._lock = threading.Lock()
        self._ledgers = {r: Ledger(s, client=writers[r]) for r, s in settings.items()}
        self._readers = {r: Reader(s, ttl=0, client=readers[r]) for r, s in settings.items()}
        self._bulk = {r: Reader(s, ttl=0, client=bulk[r]) for r, s in settings.items()}
        self._compactors = {r: Compactor(s, clients=compactors) for r, s in settings.items()}

    def add(self, event: Event, home: str, region: str, done: Callable[[], None]) -> None:
        """Add an event that was first asked for in `home`, through `region`. Raises Unanswered."""
        try:
            self._ledgers[region].add(event.counter, event.change, idempotency_key=event.key, at=event.at, region=home)
        except OutcomeUnknown as error:
            raise Unanswered from error
        done()

    def housekeep(self, region: str) -> bool:
        """What the design's scheduled job does, once; whether it did all that it had found to do."""
        report = self._compactors[region].run()
        for error in report.problems.values():
            raise error
        with self._lock:
            self.report = Report.total([self.report, report])
        return not report.gave_up

    def read(self, counter: str, region: str) -> Sight:
        balance = self._readers[region].read(counter)
        return Sight(balance.value, balance.count)

    def values(self, counters: Sequence[str], region: str) -> dict[str, int]:
        return {c: v for part in _parts(counters, 50) for c, v in self._bulk[region].values(part).items()}


class Other:
    """A design of lab/designs; its scheduled job works in each Region on the counters that were added to."""

    def __init__(self, design: Design, table: str, writers: Clients, readers: Clients) -> None:
        self.name, self.table = design.name, table
        self.writes, self.reads = _metered(writers), _metered(readers)
        self._design = design
        self._writers = {region: table_of(table, client) for region, client in writers.items()}
        self._readers = {region: table_of(table, client) for region, client in readers.items()}
        self._touched: dict[str, set[str]] = {region: set() for region in writers}

    def add(self, event: Event, home: str, region: str, done: Callable[[], None]) -> None:
        try:
            _run(self._design.add(event.counter, event.change, event.key, to_ms(event.at)), self._writers[region])
        except OutcomeUnknown as error:
            raise Unanswered from error
        for touched in self._touched.values():  # as the stream would tell each Region's job
            touched.add(event.counter)
        done()

    def housekeep(self, region: str) -> bool:
        touched, self._touched[region] = self._touched[region], set()
        for counter in list(touched):  # writers may still be adding to it
            with contextlib.suppress(TableError):  # the next run does what this one could not
                _run(self._design.housekeep(counter, region), self._writers[region])
        return True

    def read(self, counter: str, region: str) -> Sight:
        return Sight(_run(self._design.value(counter), self._readers[region]))

    def values(self, counters: Sequence[str], region: str) -> dict[str, int]:
        return {counter: self.read(counter, region).value for counter in counters}


Runner: TypeAlias = Ours | Other


def _run(program: Program[Result], table: Table) -> Result:
    return run(program, table, lambda: Instant(wall_clock(), 0))


def _metered(*groups: Clients) -> Meter:
    meter = Meter()
    for clients in groups:
        for client in clients.values():
            meter.attach(client)
    return meter


def _parts(counters: Sequence[str], size: int) -> list[Sequence[str]]:
    return [counters[i : i + size] for i in range(0, len(counters), size)]
