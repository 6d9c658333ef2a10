"""Round trips, and how fast many writers are, as ratios to plain atomic ADD.

Rule 1: DynamoDB Local does more one after another than AWS does, and its times are not AWS's: only ratios within one
run mean anything, and no time is told. Every slice of changes stands between two slices of plain ADD by as many threads
on as many counters, so that a machine that grows slower or faster favours nobody.
Rule 2: What counts is the median of the rounds. A slice ends after its time, once its writers have made a change each
on average, with those that are under way then.
Rule 3: An design that takes much longer than plain ADD for it, because its writers wait for each other, has one round.
The hybrid's consumer, merges and compactions are left out. A change that is given up is asked for again by nobody and
counts as none.
"""

import statistics
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count

from lab.designs import Design
from lab.designs.clients import Traffic
from lab.designs.trial import DESIGNS, Trial
from lab.engines.ministack import Engine
from ledger.errors import LedgerError

THREADS, COUNTERS = (1, 8, 32), (1, 1_000)
ROUNDS, SLICE_S = 3, 0.1
EACH = 1  # changes of a writer in a slice, on average, at least
SLOW = 4  # times as long as plain ADD: a slice that took longer is not repeated


@dataclass(frozen=True, slots=True)
class Trips:
    """HTTP requests of a change and of a strongly consistent read, when nobody else writes."""

    design: str
    change: float
    read: float


@dataclass(frozen=True, slots=True)
class Pace:
    """So many threads on so many counters: ratios to plain ADD's of changes a second and of a change's latency.

    changes: those that were measured, in `rounds`. retries: what the SDK sent again; conflicts: what met another writer
    and had to be done again; given_up: changes that failed; each for 1,000 changes.
    """

    design: str
    threads: int
    counters: int
    changes: int
    rounds: int
    rate: float
    p50: float
    p99: float
    retries: float
    conflicts: float
    given_up: float


@dataclass(slots=True)
class Slice:
    """Some changes of many threads: how long all took, how long each took, and what was sent for them."""

    seconds: float
    took_s: list[float]
    given_up: int
    sent: Counter[str]

    @property
    def rate(self) -> float:
        return len(self.took_s) / self.seconds


class Writers:
    """The writers of one design, in tables of their own."""

    def __init__(self, trial: Trial) -> None:
        self.trial, self.traffic, self._numbers = trial, Traffic(trial.client), count()

    def slice(self, threads: ThreadPoolExecutor, writers: int, counters: int, slice_s: float) -> Slice:
        """Every writer makes changes, at least one, until the time is over and all have made EACH on average."""
        before, took_s, given_up = self.traffic.counts.copy(), list[float](), list[LedgerError]()
        began = time.perf_counter()

        def write() -> None:
            while True:
                number, asked = next(self._numbers), time.perf_counter()
                try:
                    self.trial.add(f"{counters}-{number % counters}", 1, f"key-{number}")
                    took_s.append(time.perf_counter() - asked)
                except LedgerError as error:
                    given_up.append(error)
                if time.perf_counter() - began >= slice_s and len(took_s) + len(given_up) >= EACH * writers:
                    return

        for done in [threads.submit(write) for _ in range(writers)]:
            done.result()
        return Slice(time.perf_counter() - began, took_s, len(given_up), self.traffic.counts - before)


def trips(engine: Engine, design: Design, changes: int = 5) -> Trips:
    """Counted on changes made one after another, once the counter is there."""
    writers = Writers(Trial(engine, design))
    sent = []
    for number in range(changes + 1):
        writers.trial.add("trips", 1, f"key-{number}")
        sent.append(writers.traffic.counts["attempts"])
    writers.trial.value("trips")
    return Trips(design.name, (sent[-1] - sent[0]) / changes, writers.traffic.counts["attempts"] - sent[-1])


def paces(
    engine: Engine,
    threads: int,
    counters: int,
    designs: Sequence[Design] = DESIGNS,
    rounds: int = ROUNDS,
    slice_s: float = SLICE_S,
) -> list[Pace]:
    """Every design by so many threads on so many counters, in turns with the first one, which is plain ADD."""
    plain = Writers(Trial(engine, DESIGNS[0]))
    others = [Writers(Trial(engine, design)) for design in designs]
    found: list[list[tuple[Slice, Slice, Slice]]] = [[] for _ in designs]
    slow: set[int] = set()
    with ThreadPoolExecutor(threads) as pool:

        def slice_of(writers: Writers) -> Slice:
            return writers.slice(pool, threads, counters, slice_s)

        slice_of(plain)  # warms up
        for _ in range(rounds):
            before = slice_of(plain)
            for index, writers in enumerate(others):
                if index not in slow:
                    own, after = slice_of(writers), slice_of(plain)
                    turn = (before, own, after)
                    found[index].append(turn)
                    before = after
                    if own.seconds > SLOW * max(turn[0].seconds, turn[2].seconds):
                        slow.add(index)
    return [pace_of(design.name, threads, counters, turns) for design, turns in zip(designs, found, strict=True)]


def pace_of(name: str, threads: int, counters: int, turns: Sequence[tuple[Slice, Slice, Slice]]) -> Pace:
    own = sorted(took for _, each, _ in turns for took in each.took_s)
    plain = sorted(took for before, _, after in turns for each in (before, after) for took in each.took_s)
    sent = sum((each.sent for _, each, _ in turns), start=Counter[str]())
    thousands = max(1, len(own)) / 1_000
    return Pace(
        design=name,
        threads=threads,
        counters=counters,
        changes=len(own),
        rounds=len(turns),
        rate=statistics.median(each.rate * 2 / (before.rate + after.rate) for before, each, after in turns),
        p50=_percentile(own, 50) / _percentile(plain, 50),
        p99=_percentile(own, 99) / _percentile(plain, 99),
        retries=(sent["attempts"] - sent["calls"]) / thousands,
        conflicts=(sent["conflicts"] + sent["refused"]) / thousands,
        given_up=sum(each.given_up for _, each, _ in turns) / thousands,
    )


def _percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else float("inf")
