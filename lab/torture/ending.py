"""The end of a round: a replay, compaction to rest, and what both Regions say then.

Rule 1: Some of what was acknowledged is sent again, as a replay a year later would, before everything is counted.
Rule 2: Whoever looks here asks the engine itself; what is written goes through the proxy, which is calm by now.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from compactor import Compactor, Report
from lab.engines.ministack import Engine
from lab.engines.proxy import OUTSIDE
from lab.engines.replicator import Replicator
from lab.torture import checker
from lab.torture import writers as writes
from lab.torture.checker import Violation
from lab.torture.plan import KEEP_MS, LATENESS_MS, REGIONS, TABLE, Plan, name_of
from lab.torture.record import CounterHistory
from ledger import Ledger, Settings
from reader import Reader

DRAIN_TIMEOUT_MS = 300_000
VISITS = 3  # compactions, keep apart: fold and note, clean and note again, clean
REPLAYED, HISTORIES = 0.15, 0.3
REPLAYED_AT_ONCE, VALUES_AT_ONCE = 25, 20


def end(plan: Plan, engine: Engine, replicator: Replicator, told: Mapping[int, CounterHistory]) -> Iterator[Violation]:
    """Brings the table to rest, and everything that is wrong then."""
    rng = random.Random(f"{plan.seed} end")
    settings = {region: replace(plan.settings(region, "", engine.endpoint_url), fold_min=1) for region in REGIONS}
    _replay(plan, told, rng)
    compactors = {region: Compactor(settings[region], clock=plan.clock()) for region in REGIONS}
    time.sleep(LATENESS_MS / 1_000)
    for visit in range(VISITS):
        time.sleep(KEEP_MS / 1_000 if visit else 0)
        replicator.drain(DRAIN_TIMEOUT_MS)
        report = Report.total(compactors[region].run() for region in REGIONS)
        yield from (Violation(None, f"at the end, {lane}: {error}") for lane, error in report.problems.items())
        yield from (Violation(None, f"at the end, {token} differs from its segment") for token in report.conflicts)
        replicator.drain(DRAIN_TIMEOUT_MS)
    yield from _count(rng, told, settings, plan)
    for history in told.values():
        name = name_of(history.counter)
        if settings[REGIONS[0]].limit_of(name) is not None:
            differences = compactors[REGIONS[0]].verify(name).differences
            yield from (Violation(history.counter, each) for each in differences)


def _replay(plan: Plan, told: Mapping[int, CounterHistory], rng: random.Random) -> None:
    """Sends some of what was acknowledged once more, through any Region."""
    again = [
        writes.Asked(history.counter, change.number, change.home, change.at_ms).change
        for history in told.values()
        for change in history.changes.values()
        if change.acknowledged and rng.random() < REPLAYED
    ]
    for some in range(0, len(again), REPLAYED_AT_ONCE):
        settings = plan.settings(rng.choice(REGIONS), OUTSIDE)
        Ledger(settings, clock=plan.clock()).add_many(again[some : some + REPLAYED_AT_ONCE])


def _count(
    rng: random.Random, told: Mapping[int, CounterHistory], settings: Mapping[str, Settings], plan: Plan
) -> Iterator[Violation]:
    readers = {region: Reader(settings[region], clock=plan.clock()) for region in REGIONS}
    values: dict[str, dict[str, int]] = {region: {} for region in REGIONS}
    names = [name_of(counter) for counter in told]
    for region, reader in readers.items():
        for some in range(0, len(names), VALUES_AT_ONCE):
            values[region] |= reader.values(names[some : some + VALUES_AT_ONCE])
    for history in told.values():
        name = name_of(history.counter)
        ends = {region: values[region][name] for region in REGIONS}
        listed: dict[str, list[int]] = {}
        if rng.random() < HISTORIES:
            listed = {region: [entry.change for entry in readers[region].history(name)] for region in REGIONS}
        yield from checker.check_end(history, ends, listed)


def left(engine: Engine) -> Counter[str]:
    """What the home tables hold at the end: every commit's segment, and the deltas that were not cleaned."""
    counts: Counter[str] = Counter()
    for region in REGIONS:
        pages = engine.client(region).get_paginator("scan").paginate(TableName=TABLE, ProjectionExpression="pk, sk")
        for item in (item for page in pages for item in page["Items"]):
            kind, home = [*str(item["pk"]["S"]).split("#", 2), ""][:2]  # the shape's is one word
            counts["gates"] += kind == "gate" and home == region
            counts["segments of gates"] += kind == "past" and home == region
            if kind == "fold" and home == region and str(item["sk"]["S"]).startswith("segment#"):
                counts["commits"] += 1
            counts["deltas left at the end"] += kind == "delta"
    return counts
