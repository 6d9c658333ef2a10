"""The end of a run: a replay, compaction to rest, and what both Regions say then.

Rule 1: It sends some acknowledged changes again, as a replay a year later would, before it reads
every counter.
Rule 2: It reads from the engine itself, and writes through the proxy, which makes no faults by now.
"""

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from compactor import Compactor, Report
from lab.engines.ministack import Engine
from lab.engines.proxy import OUTSIDE
from lab.engines.replicator import Replicator
from lab.events import is_witness
from lab.run import judge
from lab.run.plan import KEEP_MS, LATENESS_MS, REGIONS, Asked, Plan
from lab.run.record import Histories
from ledger import Ledger
from reader import Reader

DRAIN_TIMEOUT_MS = 300_000
VISITS = 3  # compactions, keep apart: fold and note, clean and note again, clean
REPLAYED, HISTORIES = 0.15, 0.3
REPLAYED_AT_ONCE, VALUES_AT_ONCE = 25, 20

Values = dict[str, dict[str, int]]
"""By Region and counter."""


def end(
    plan: Plan, engine: Engine, replicator: Replicator, histories: Histories
) -> tuple[Values, list[str]]:
    """Brings the table to rest; the value of every counter then, and what is wrong."""
    rng = random.Random(f"{plan.seed} end")
    settings = {
        region: replace(plan.settings(region, "", engine.endpoint_url), fold_min=1)
        for region in REGIONS
    }
    names = sorted(histories)
    _replay(plan, histories, rng)
    wrong: list[str] = []
    compactors = {region: Compactor(settings[region], clock=plan.clock()) for region in REGIONS}
    time.sleep(LATENESS_MS / 1_000)
    for visit in range(VISITS):
        time.sleep(KEEP_MS / 1_000 if visit else 0)
        replicator.drain(DRAIN_TIMEOUT_MS)
        report = Report.total(compactors[region].run() for region in REGIONS)
        wrong += [f"at the end, {lane}: {error}" for lane, error in report.problems.items()]
        wrong += [f"at the end, {token} differs from its segment" for token in report.conflicts]
        replicator.drain(DRAIN_TIMEOUT_MS)
    readers = {region: Reader(settings[region], clock=plan.clock()) for region in REGIONS}
    values = {region: _values_of(reader, names) for region, reader in readers.items()}
    wrong += _judged(histories, values, readers, rng)
    for name in names:
        if settings[REGIONS[0]].limit_of(name) is not None:
            wrong += [f"{name}: {each}" for each in compactors[REGIONS[0]].verify(name).differences]
    return values, wrong


def _replay(plan: Plan, histories: Histories, rng: random.Random) -> None:
    """Sends some acknowledged changes once more, through any Region."""
    again = [
        plan.change(Asked(change.number, change.home, change.at_ms))
        for history in histories.values()
        for change in history.changes.values()
        if change.acknowledged and rng.random() < REPLAYED
    ]
    for first in range(0, len(again), REPLAYED_AT_ONCE):
        settings = plan.settings(rng.choice(REGIONS), OUTSIDE)
        Ledger(settings, clock=plan.clock()).add_many(again[first : first + REPLAYED_AT_ONCE])


def _values_of(reader: Reader, names: Sequence[str]) -> dict[str, int]:
    parts = [
        names[first : first + VALUES_AT_ONCE] for first in range(0, len(names), VALUES_AT_ONCE)
    ]
    return {name: value for part in parts for name, value in reader.values(part).items()}


def _judged(
    histories: Histories, values: Values, readers: Mapping[str, Reader], rng: random.Random
) -> Iterator[str]:
    """What is wrong with the witnesses, and with the histories of some of them."""
    for name, history in histories.items():
        if is_witness(name):
            listed: dict[str, list[int]] = {}
            if rng.random() < HISTORIES:
                listed = {
                    region: [entry.change for entry in readers[region].history(name)]
                    for region in REGIONS
                }
            yield from judge.check_end(
                history, {region: values[region][name] for region in REGIONS}, listed
            )
