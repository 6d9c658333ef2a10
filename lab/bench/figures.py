"""The figures of the counter: units, round trips and import time, each measured in this run.

Rule 1: Units are the meter's, by AWS's published rules from the items that really crossed the wire.
Rule 2: The clock is ours, so that nothing waits.
Rule 3: Times are of CPU, because machines are noisy. Speed is in add_speed.py and compactor_speed.py.
"""

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compactor import Compactor, Report
from lab.engines.ministack import Engine
from lab.meters.charge import Charge
from lab.meters.meter import Meter
from ledger import Change, Ledger, Settings
from reader import Reader

REGION = "eu-west-1"
START_MS = 1_800_000_000_000
ROUND = 10_000  # changes between two runs of the compactor on the hot counter


class Bench:
    """A table with a ledger, a reader and a compactor whose requests are metered apart."""

    def __init__(self, engine: Engine, table: str) -> None:
        engine.create_table(table, REGION)
        self.settings = Settings(table=table, region=REGION, clean_units_per_s=10**9)  # at the engine's own pace
        self.now_ms = START_MS
        self.meters = {name: Meter() for name in ("ledger", "reader", "compactor")}
        self.client = engine.client(REGION)
        clients = {name: engine.client(REGION) for name in self.meters}
        for name, meter in self.meters.items():
            meter.attach(clients[name])
        self.ledger = Ledger(self.settings, client=clients["ledger"], clock=self._clock)
        self.reader = Reader(self.settings, client=clients["reader"], clock=self._clock)
        self.compactor = Compactor(self.settings, clients={REGION: clients["compactor"]}, clock=self._clock)
        self.reader.read("another")  # asks for the table's shape, once a process; the figures are of what comes after

    def _clock(self) -> int:
        return self.now_ms

    def write(self, counter: str, changes: int, *, each: int = 500, pack: bool = False) -> None:
        """Add that many changes of 1, about a millisecond apart, `each` in a call; pack: they are one item."""
        for done in range(0, changes, each):
            some = min(each, changes - done)
            self.now_ms += some
            for receipt in self.ledger.add_many([Change(counter, 1)] * some, pack=pack):
                if isinstance(receipt, Exception):
                    raise receipt

    def compact(self, counter: str) -> Report:
        """A compaction after everything is old enough, then the two visits of a clean."""
        self.now_ms += self.settings.allowed_lateness_ms + 1
        folded, noted = self.compactor.compact(counter), self.compactor.compact(counter)
        self.now_ms += self.settings.keep_ms
        return Report.total([folded, noted, self.compactor.compact(counter)])

    def cost(self, *names: str) -> Charge:
        """What the meters of these have counted so far."""
        return sum((self.meters[name].total() for name in names), start=Charge())


@dataclass(frozen=True, slots=True)
class Life:
    """A counter's life: its changes, what writes and compaction cost for each, and the deltas a merge took."""

    changes: int
    write_units: float
    read_units: float
    deltas_per_commit: float


@dataclass(frozen=True, slots=True)
class ReadCost:
    """One strongly consistent read: after how many changes, its round trips, requests and read units."""

    changes: int
    requests: int
    read_units: float


def lives(
    engine: Engine, say: Callable[[str], None], targets: Sequence[int] = (100, 1_000, 10_000, 100_000)
) -> tuple[Life, Life, list[ReadCost]]:
    """(a hot counter, a cold one, the reads of the hot one after each of these numbers of changes)."""
    hot = Bench(engine, "bench-hot")
    reads, written, reports = [], 0, []
    for target in targets:
        while written < target:
            step = min(ROUND, target - written)
            hot.write("hot", step)
            written += step
            reports.append(hot.compact("hot"))
            say(f"{written:,} of {targets[-1]:,} changes")
        reads.append(_read(hot, "hot", written))
    total = Report.total(reports)
    cold = Bench(engine, "bench-cold")
    cold.write("cold", 20)
    cold.compact("cold")
    return _life(hot, written, total.folded / total.commits), _life(cold, 20, 0), reads


def _life(bench: Bench, changes: int, deltas_per_commit: float) -> Life:
    spent = bench.cost("ledger", "compactor")
    return Life(changes, spent.write_units / changes, spent.read_units / changes, deltas_per_commit)


def _read(bench: Bench, counter: str, changes: int) -> ReadCost:
    before = bench.cost("reader")
    value = bench.reader.read(counter).value
    if value != changes:
        raise AssertionError(f"the counter reads {value}, but it has {changes} changes of 1")
    spent = bench.cost("reader") - before
    return ReadCost(changes, spent.requests, spent.read_units)


FUNCTIONS = ("add_from_queue", "api", "ring", "compact", "sweep", "canary")
ENVIRONMENT = {
    **dict.fromkeys(("LEDGER_TABLE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "counters"),
    "AWS_REGION": "eu-west-1",
    "LEDGER_WORK_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/111122223333/work",
    "PYTHONDONTWRITEBYTECODE": "",  # the first run compiles, as pip does when it installs
}
"""What a function is started with; nothing is sent."""


def import_over_boto3_ms(module: str, runs: int) -> tuple[float, float]:
    """(what `import boto3` takes, what `import <module>` takes on top of it), CPU ms, medians of new processes.

    For a function's `service.<name>.main` the latter is the cold start of our code: imports, settings and clients.
    """
    code = (
        f"from time import process_time as now; a = now(); import boto3; b = now(); import {module}; "
        "print(b - a, now() - b)"
    )
    command = [sys.executable, "-c", code]
    outputs = [
        subprocess.run(command, env=os.environ | ENVIRONMENT, capture_output=True, check=True).stdout
        for _ in range(runs)
    ]
    pairs = [tuple(map(float, output.split())) for output in outputs]
    return statistics.median(p[0] for p in pairs) * 1000, statistics.median(p[1] for p in pairs) * 1000
