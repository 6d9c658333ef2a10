"""What a change and a read cost, in units and in dollars.

Rule 1: Units are the meter's, by AWS's published rules from the items that crossed the wire. All designs get the same
changes, those that count things a change of 1 for each.
Rule 2: Every sum is checked. Changes are made one after another, a second apart, so nothing meets a conflict; in packs,
as many at once as the design says. Of what is charged:

- A time to live deletes for nothing in the Region where it runs out; each other Region pays a replicated write (TTL).
- The hybrid's stream brings two records of each thing, its put and its flag, and the consumer looks at both. A Lambda
  function reads a stream for nothing (STREAMS).
- Ours: `Compactor.compact` by callers who know their counters; what a service takes to find work comes on top
  (docs/costs.md). What is less than `fold_min` is not folded, and costs one unit a change; where some was, a second
  visit cleans.
- All that is told of changes is of the second half of them: the first half is the run-up, in which items grow.
- What a change leaves for good is what the second half of the changes left; storage is that of a year with a million
  changes a month. Of the markers with a time to live, the last week's are left out.

TTL https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html
STREAMS https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CostOptimization_StreamsUsage.html
"""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from lab.designs import Design
from lab.designs.hybrid import COUNTED, NO, THING, Hybrid
from lab.designs.item_collection import Ours, Packed
from lab.designs.transaction_marker import TransactionMarker
from lab.designs.trial import DESIGNS, SETTINGS, Trial
from lab.engines.ministack import Engine
from lab.events import SHOP as COLUMNS
from lab.events import Event, read_events, shop_day
from lab.meters.charge import Charge
from lab.meters.meter import Meter
from ledger.cost import item_bytes
from ledger.lane.tail import every_item
from ledgerctl.bill import Usage

SEED = 1
SHOP, ONE = 100, 220  # changes of many counters and of one; half of the latter are more than design 3 keeps in its item
STEP_MS = 1_000
READS_MAX = 30
KEY_LENGTH = 36
AT_ONCE = 3


@dataclass(frozen=True, slots=True)
class Spent:
    """What a design spent on some changes, on all housekeeping, and on some strongly consistent reads.

    left_bytes, left_items: what a change leaves for good.
    """

    design: Design
    changes: int
    reads: int
    change: Charge
    housekeeping: Charge
    read: Charge
    left_bytes: float
    left_items: float

    @property
    def grows(self) -> bool:
        """Whether changes are kept in an item that there is already: each costs more than the one before."""
        return self.left_bytes > 0 and not self.left_items

    @property
    def usage(self) -> Usage:
        both = self.change + self.housekeeping
        return Usage(
            write_units=both.write_units / self.changes,
            replicated_units=both.replicated_units / self.changes,
            compaction_read_units=both.read_units / self.changes,
            read_units=self.read.read_units / self.reads,
            item_bytes=self.left_bytes,
            items=self.left_items,
        )


def shop_events(path: Path | None = None, count: int = ONE) -> list[Event]:
    """The first events of the file; without one, of a generated day. Their keys are made as long as a UUID."""
    found = read_events(path, COLUMNS, count) if path else shop_day(SEED)[:count]
    return [replace(event, key=event.key.rjust(KEY_LENGTH, "0")) for event in found]


def on_one_counter(events: Sequence[Event]) -> list[Event]:
    """The same events, as if the shop had a single article."""
    return [Event("stock:all", event.change, event.key, event.at) for event in events]


def spent(engine: Engine, events: Sequence[Event], designs: Sequence[Design] = DESIGNS) -> list[Spent]:
    """What each design spends on these changes. They have tables of their own, so some run at once."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(partial(spend, engine, events), designs))


def spend(engine: Engine, events: Sequence[Event], design: Design) -> Spent:
    """One design, in new tables: half of the events, housekeeping, the others, housekeeping, reads."""
    trial, meter = Trial(engine, design), Meter()
    meter.attach(trial.client)
    truth: Counter[str] = Counter()
    left = [(0, 0)]
    half = len(events) // 2
    later = len(events) - half
    for some in (events[:half], events[half:]):
        before = meter.total()
        together = design.together if isinstance(design, Packed) else 1
        for first in range(0, len(some), together):
            trial.now_ms += STEP_MS
            asked = [(e.counter, 1 if design.claims.units else e.change, e.key) for e in some[first : first + together]]
            truth.update({counter: sum(n for c, n, _ in asked if c == counter) for counter, _, _ in asked})
            trial.add_together(asked)
        change = meter.total() - before
        housekeeping = _housekept(trial, meter, {event.counter for event in some})
        sizes = [item_bytes(item) for item in trial.everything()]
        left.append((len(sizes), sum(sizes)))
    before = meter.total()
    counters = sorted(truth)[:READS_MAX]
    for counter in counters:
        if trial.value(counter) != truth[counter]:
            raise AssertionError(f"{design.name}: {counter} reads {trial.value(counter)}, not {truth[counter]}")
    read = meter.total() - before
    items, size = (after - at_half for at_half, after in zip(*left[-2:], strict=True))
    return Spent(
        design=design,
        changes=later,
        reads=len(counters),
        change=change,
        housekeeping=housekeeping,
        read=read,
        left_bytes=max(0.0, round(size / later, 1)),  # a total that has a digit more is nothing that a change left
        left_items=items / later,
    )


def _housekept(trial: Trial, meter: Meter, counters: set[str]) -> Charge:
    """What the design's housekeeping of these counters is charged."""
    before = meter.total()
    match trial.design:
        case TransactionMarker(keep_ms=int()):
            trial.expire(trial.design)
            return Charge(replicated_units=(meter.total() - before).replicated_units)
        case Hybrid():
            found = [trial.run(every_item(f"{THING}{each}", None, None, consistent=True)) for each in sorted(counters)]
            before = meter.total()
            for thing in (thing for things in found for thing in things if thing[COUNTED] == NO):
                for _ in ("its put", "its flag"):
                    trial.run(trial.design.consume(thing))
        case _:
            for counter in sorted(counters):
                units = meter.total().write_units
                trial.housekeep(counter)
                if isinstance(trial.design, Ours) and meter.total().write_units > units:
                    trial.housekeep(counter)
                    trial.housekeep(counter, SETTINGS.keep_ms)
    return meter.total() - before
