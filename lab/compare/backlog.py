"""A backlog of deltas on an engine, and how fast it goes away: ours against the naive merge.

Rules: deltas are put in batches, as items that the approach itself would have put; what is measured is the approach's
own housekeeping, every step of it; CPU is this process's, so the engine's is not in it. The steps of ours one by one,
and the memory of a fold, are in lab/bench/compaction.py.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from lab.bench.compaction import put_all
from lab.designs.item_collection import ItemCollection, Ours
from lab.designs.trial import REGION, SETTINGS, Trial
from lab.engines.ministack import Engine
from lab.meters.meter import Meter
from ledger import tokens
from ledger.items import delta_item
from ledger.values import Delta, Lane

DELTAS = 2_000
COUNTER = "backlog"


@dataclass(frozen=True, slots=True)
class Compaction:
    """All housekeeping of a backlog: deltas a second of CPU and of time; transactions for 10,000 deltas."""

    approach: str
    deltas: int
    by_cpu: float
    by_time: float
    transactions: float


def compaction(engine: Engine, approach: ItemCollection, deltas: int = DELTAS) -> Compaction:
    """That many deltas of one counter go away, and its value stays."""
    trial, meter = Trial(engine, approach), Meter()
    put_deltas(trial, COUNTER, range(deltas))
    meter.attach(trial.client)
    began, cpu_began = time.perf_counter(), time.process_time()
    make_go(trial, COUNTER)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    transactions = meter.costs()["TransactWriteItems"].requests
    value, left = trial.value(COUNTER), [item for item in trial.everything() if "change" in item]
    if value != deltas or left:
        raise AssertionError(f"{approach.name}: the value is {value}, and {len(left)} of {deltas} deltas are left")
    return Compaction(approach.name, deltas, deltas / cpu_seconds, deltas / seconds, transactions / deltas * 10_000)


def put_deltas(trial: Trial, counter: str, numbers: Sequence[int]) -> None:
    """A change of 1 for each number, a millisecond apart."""
    lane, items = Lane(REGION, 0, counter), []
    for each in numbers:
        trial.now_ms += 1
        items.append(delta_item(Delta(lane, tokens.keyed(counter, key(each), trial.now_ms), 1)))
    put_all(trial.client, trial.name, items)


def make_go(trial: Trial, counter: str) -> None:
    """The approach's housekeeping until nothing is left to do: ours folds, settles, and cleans in two later visits."""
    trial.housekeep(counter)
    if isinstance(trial.approach, Ours):
        trial.housekeep(counter)
        trial.housekeep(counter, SETTINGS.keep_ms)


def key(number: int) -> str:
    """A change's: 36 characters, as a UUID has."""
    return f"{number:036}"
