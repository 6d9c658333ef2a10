"""How fast many writers are, as ratios to plain atomic ADD.

Rule 1: An engine's times are not AWS's: only ratios within one run mean anything. Every slice of
changes stands between two slices of plain ADD by as many threads on as many counters, so that a
machine that grows slower favours nobody.
Rule 2: What counts is the median of the rounds. A slice ends after its time, once its writers have
made a change each on average. Who takes much longer than plain ADD for it, because its writers wait
for each other, has one round.
Rule 3: Housekeeping is left out. Nobody sends a change again that was given up; it counts as none.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import NamedTuple

from lab.designs import Design
from lab.designs.trial import DESIGNS, Trial, on_engine
from lab.engines.ministack import Engine
from ledger.core.errors import LedgerError

THREADS, COUNTERS = 32, (1, 1_000)
ROUNDS, SLICE_S = 3, 0.1
SLOW = 4  # times as long as plain ADD: a slice that took longer is not repeated


class Pace(NamedTuple):
    """rate: changes a second over plain ADD's.

    made, given_up: how many changes were, in all rounds.
    """

    rate: float
    made: int
    given_up: int


class Slice(NamedTuple):
    seconds: float
    made: int
    given_up: int

    @property
    def rate(self) -> float:
        return self.made / self.seconds


class Writers:
    """Who makes changes, by `change(counter, key)`, of so many counters in turn."""

    def __init__(self, change: Callable[[str, str], object], counters: int) -> None:
        self._change, self._counters, self._numbers = change, counters, count()

    def slice(self, threads: ThreadPoolExecutor, writers: int, slice_s: float) -> Slice:
        """Every writer makes changes, at least one, until the time is over and all have made one
        on average.
        """
        made, given_up = list[int](), list[int]()
        began = time.perf_counter()

        def write() -> None:
            while True:
                number = next(self._numbers)
                try:
                    self._change(f"counter-{number % self._counters}", f"key-{number}")
                    made.append(number)
                except LedgerError:
                    given_up.append(number)
                if time.perf_counter() - began >= slice_s and len(made) + len(given_up) >= writers:
                    return

        for done in [threads.submit(write) for _ in range(writers)]:
            done.result()
        return Slice(time.perf_counter() - began, len(made), len(given_up))


def measure_pace(
    engine: Engine,
    design: Design,
    counters: int,
    rounds: int,
    slice_s: float,
    threads: int = THREADS,
) -> Pace:
    """A design by so many threads, in turns with plain ADD."""
    plain, own = (
        Writers(_adds(on_engine(engine, each)), counters) for each in (DESIGNS[0], design)
    )
    return pace(own, plain, rounds, slice_s, threads)


def _adds(trial: Trial) -> Callable[[str, str], object]:
    return lambda counter, key: trial.add(counter, 1, key)


def pace(own: Writers, plain: Writers, rounds: int, slice_s: float, threads: int) -> Pace:
    """Writers, in turns with those of plain ADD."""
    turns: list[tuple[Slice, Slice, Slice]] = []
    with ThreadPoolExecutor(threads) as pool:
        for writers in (plain, own):
            # warms up: connections, and the counters themselves
            writers.slice(pool, threads, slice_s)
        while len(turns) < rounds:
            before, between, after = (
                each.slice(pool, threads, slice_s) for each in (plain, own, plain)
            )
            turns.append((before, between, after))
            if between.seconds > SLOW * max(before.seconds, after.seconds):
                break
    return pace_of(turns)


def pace_of(turns: Sequence[tuple[Slice, Slice, Slice]]) -> Pace:
    """Of each slice between two of plain ADD."""
    rates = [own.rate * 2 / (before.rate + after.rate) for before, own, after in turns]
    made, given_up = sum(own.made for _, own, _ in turns), sum(own.given_up for _, own, _ in turns)
    return Pace(statistics.median(rates), made, given_up)
