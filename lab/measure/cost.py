"""What each design takes: the units of a change and of a read, and how fast many writers are beside
plain ADD.

Units are of what a design asks of a metered table. Every sum is checked; what is said of changes is
of the second half of them, because in the first, items grow.

Rule 1: All designs get the same changes, those that count things a change of 1 for each, one after
another, a second apart, so that nothing meets a conflict; in packs, as many at once as the design
says.
Rule 2: Of housekeeping is charged:

- A time to live deletes for nothing (TTL).
- The hybrid's stream brings two records of each thing, its put and its flag, and the consumer looks
  at both. A Lambda function reads a stream for nothing (STREAMS).
- Ours: `Compactor.compact` by callers who know their counters. What is less than `fold_min` is not
  folded; where some was, a second visit cleans.

Rule 3: An engine's times are not AWS's, so a pace is a ratio within one run. Every slice of changes
stands between two slices of plain ADD by as many threads on as many counters, so that a machine
that grows slower favours nobody.

TTL https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html
STREAMS
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CostOptimization_StreamsUsage.html
"""

import itertools
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from lab.designs import Design
from lab.designs.hybrid import COUNTED, NO, THING, Hybrid
from lab.designs.item_collection import Ours, Packed
from lab.designs.powertools import Powertools
from lab.designs.transactions import TransactionMarker
from lab.designs.trial import DESIGNS, REGION, SETTINGS, Trial, on_engine
from lab.engines.ministack import Engine
from lab.events import SHOP as COLUMNS
from lab.events import Event, read_events, shop_day
from lab.measure.metered_table import Charge, MeteredTable, cost
from ledger.core.cost import item_bytes
from ledger.core.errors import LedgerError
from ledger.lane.tail import every_item
from ledger.tables.dynamo import ByRegion

SEED = 1
# changes of many counters and of one; half of the latter are more than design 3 keeps in its item
SHOP, ONE = 100, 220
STEP_MS = 1_000
KEY_LENGTH = 36
TTL_MS = 2_000  # after its time an item is gone; a time to live is in seconds

THREADS, COUNTERS = 32, (1, 1_000)
ROUNDS, SLICE_S = 3, 0.1
SLOW = 4  # times as long as plain ADD: a slice that took longer is not repeated


@dataclass(frozen=True, slots=True)
class Spent:
    """On some changes and all their housekeeping; reads: a strongly consistent one after each half
    of the changes.

    left_bytes, left_items: what the changes left for good.
    """

    changes: int
    change: Charge
    housekeeping: Charge
    reads: tuple[Charge, Charge]
    left_bytes: int
    left_items: int

    @property
    def write_units(self) -> float:
        """Of a change, with its housekeeping."""
        return (self.change + self.housekeeping).write_units / self.changes

    @property
    def grows(self) -> bool:
        """Whether changes are kept in an item that there is already: each costs more than the
        one before.
        """
        return self.left_bytes / self.changes >= 1 and not self.left_items


def shop_events(path: Path | None = None, count: int = ONE) -> list[Event]:
    """The first events of the file; without one, of a generated day.

    Their keys are made as long as a UUID.
    """
    found = read_events(path, COLUMNS, count) if path else shop_day(SEED)[:count]
    return [replace(event, key=event.key.rjust(KEY_LENGTH, "0")) for event in found]


def on_one_counter(events: Sequence[Event]) -> list[Event]:
    """The same events, as if the shop had a single article."""
    return [Event("stock:all", event.change, event.key, event.at) for event in events]


def spend(events: Sequence[Event], design: Design) -> Spent:
    """One design, in a new table: twice half of the events, housekeeping, and a read."""
    table = MeteredTable()
    trial, truth, halves = Trial(design, ByRegion(REGION, {REGION: table})), Counter[str](), []
    for part in (events[: len(events) // 2], events[len(events) // 2 :]):
        changed = cost(partial(_add, trial, part, truth), [table])
        housekeeping = _housekept(trial, table, {event.counter for event in part})
        sizes = [item_bytes(item) for item in table.table.items.values()]
        read = cost(partial(_check, trial, truth), [table])
        halves.append((changed, housekeeping, read, sum(sizes), len(sizes)))
    (
        (_, _, first, bytes_before, items_before),
        (change, housekeeping, last, bytes_after, items_after),
    ) = halves
    left = bytes_after - bytes_before, items_after - items_before
    return Spent(len(events) - len(events) // 2, change, housekeeping, (first, last), *left)


def _check(trial: Trial, truth: Counter[str]) -> None:
    """Read one counter. Raises AssertionError where it is wrong."""
    counter = min(truth)
    if (found := trial.value(counter)) != truth[counter]:
        raise AssertionError(f"{trial.design.name}: {counter} reads {found}, not {truth[counter]}")


def _add(trial: Trial, events: Sequence[Event], truth: Counter[str]) -> None:
    together = trial.design.together if isinstance(trial.design, Packed) else 1
    for first in range(0, len(events), together):
        trial.now_ms += STEP_MS
        batch = events[first : first + together]
        changes = [(e.counter, 1 if trial.design.claims.units else e.change, e.key) for e in batch]
        for counter, change, _ in changes:
            truth[counter] += change
        trial.add_together(changes)


def _housekept(trial: Trial, table: MeteredTable, counters: set[str]) -> Charge:
    """What the design's housekeeping of these counters is charged."""
    match trial.design:
        case TransactionMarker(keep_ms=int(keep_ms)) | Powertools(keep_ms=keep_ms):
            trial.housekeep("", keep_ms + TTL_MS)
            return Charge()
        case Hybrid():
            consume = trial.design.consume
            found = [
                trial.run(every_item(f"{THING}{counter}", None, None, consistent=True))
                for counter in sorted(counters)
            ]
            records = [  # of each thing its put and its flag
                record
                for thing in itertools.chain.from_iterable(found)
                if thing[COUNTED] == NO
                for record in (thing, thing)
            ]
            return cost(lambda: [trial.run(consume(record)) for record in records], [table])
    spent = Charge()
    for counter in sorted(counters):
        visit = cost(partial(trial.housekeep, counter), [table])
        spent += visit
        if isinstance(trial.design, Ours) and visit.write_units:
            spent += cost(partial(trial.housekeep, counter), [table])
            spent += cost(partial(trial.housekeep, counter, SETTINGS.keep_ms), [table])
    return spent


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
        self._change, self._counters, self._numbers = change, counters, itertools.count()

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
    """Writers, in turns with those of plain ADD; the median of the rounds counts.

    Housekeeping is left out. Nobody sends a change again that was given up; it counts as none.
    """
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
            # whose writers wait for each other has one round
            if between.seconds > SLOW * max(before.seconds, after.seconds):
                break
    rates = [own.rate * 2 / (before.rate + after.rate) for before, own, after in turns]
    made, given_up = sum(own.made for _, own, _ in turns), sum(own.given_up for _, own, _ in turns)
    return Pace(statistics.median(rates), made, given_up)
