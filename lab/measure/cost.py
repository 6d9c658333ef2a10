"""What a change and a read of each design cost, in units.

Rule 1: Units are of what a design asks of a metered table. All designs get the same changes, those that count things a
change of 1 for each, one after another, a second apart, so that nothing meets a conflict; in packs and by group commit,
as many at once as the design says.
Rule 2: Every sum is checked. What is said of changes is of the second half of them: in the first, items grow.
Rule 3: Of housekeeping is charged:

- A time to live deletes for nothing (TTL).
- The hybrid's stream brings two records of each thing, its put and its flag, and the consumer looks at both. A Lambda
  function reads a stream for nothing (STREAMS).
- Ours: `Compactor.compact` by callers who know their counters. What is less than `fold_min` is not folded; where some
  was, a second visit cleans.

TTL https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html
STREAMS https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CostOptimization_StreamsUsage.html
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lab.designs import Design, every
from lab.designs.hybrid import COUNTED, NO, THING, Hybrid
from lab.designs.item_collection import Ours, Packed
from lab.designs.powertools import Powertools
from lab.designs.transactions import TransactionMarker
from lab.designs.with_limit import Limited
from lab.events import Event, shop_day
from lab.measure.metered_table import Charge, MeteredTable
from ledger.cost import item_bytes
from ledger.errors import LedgerError
from ledger.lane.tail import every_item
from ledger.requests import Instant, Program, Result, run
from ledger.settings import Settings
from ledger.table import ByRegion

SEED = 1
ONE = 220  # changes; half of them are more than design 3 keeps in its item
STEP_MS = 1_000
KEY_LENGTH = 36
TTL_MS = 2_000  # after its time an item is gone; a time to live is in seconds
COUNTER, REGION, START_MS = "stock:all", "eu-west-1", 1_800_000_000_000
SETTINGS = Settings(table="compared", region=REGION, clean_units_per_s=10**9)  # nothing waits
DESIGNS = every(SETTINGS)


@dataclass(frozen=True, slots=True)
class Spent:
    """On some changes and all their housekeeping; reads: a strongly consistent one after each half of the changes.

    grows: changes are kept in an item that there is already, so each costs more than the one before.
    """

    changes: int
    change: Charge
    housekeeping: Charge
    reads: tuple[Charge, Charge]
    grows: bool = False

    @property
    def write_units(self) -> float:
        """Of a change, with its housekeeping."""
        return (self.change + self.housekeeping).write_units / self.changes


def shop_events() -> list[Event]:
    """The first of a generated day, as if the shop had a single article. Their keys are made as long as a UUID."""
    return [replace(each, counter=COUNTER, key=each.key.rjust(KEY_LENGTH, "0")) for each in shop_day(SEED)[:ONE]]


def spend(events: Sequence[Event], design: Design) -> Spent:
    """One design, in a new table: twice half of the events, housekeeping, and a read."""
    trial, truth, halves = Trial(design), 0, []
    for part in (events[: len(events) // 2], events[len(events) // 2 :]):
        before = trial.cost
        truth += trial.add(part)
        changed = trial.cost
        housekeeping = trial.housekept()
        sizes = [item_bytes(item) for item in trial.table.table.items.values()]
        read = trial.cost
        if (found := trial.run(design.value(COUNTER))) != truth:
            raise AssertionError(f"{design.name}: {COUNTER} reads {found}, not {truth}")
        halves.append((changed - before, housekeeping, trial.cost - read, sum(sizes), len(sizes)))
    (_, _, first, bytes_before, items_before), (change, housekeeping, last, bytes_after, items_after) = halves
    changes = len(events) - len(events) // 2
    grows = bytes_after - bytes_before >= changes and items_after == items_before
    return Spent(changes, change, housekeeping, (first, last), grows)


class Trial:
    """One design in a metered table of its own, by a clock that each step moves on."""

    def __init__(self, design: Design) -> None:
        self.design, self.table, self._now_ms = design, MeteredTable(), START_MS

    @property
    def cost(self) -> Charge:
        return self.table.cost

    def run(self, program: Program[Result]) -> Result:
        return run(program, ByRegion(REGION, {REGION: self.table}), lambda: Instant(self._now_ms, 0))

    def add(self, events: Sequence[Event]) -> int:
        """Count them, at once where the design has a way to; the sum of their changes."""
        design, truth = self.design, 0
        together = design.together if isinstance(design, Packed | Limited) else 1
        for first in range(0, len(events), together):
            self._now_ms += STEP_MS
            asked = events[first : first + together]
            changes = [(1 if design.claims.units else each.change, each.key, self._now_ms) for each in asked]
            truth += sum(change for change, _, _ in changes)
            if isinstance(design, Packed | Limited):
                for outcome in self.run(design.put([design.delta(COUNTER, *change) for change in changes])):
                    if isinstance(outcome, LedgerError):
                        raise outcome
            else:
                for change in changes:
                    self.run(design.add(COUNTER, *change))
        return truth

    def housekept(self) -> Charge:
        """What the design's housekeeping of the counter is charged."""
        before, design = self.cost, self.design
        match design:
            case TransactionMarker(keep_ms=int(keep_ms)) | Powertools(keep_ms=keep_ms):
                self._visit(keep_ms + TTL_MS)
                return Charge()
            case Hybrid():
                found = self.run(every_item(f"{THING}{COUNTER}", None, None, consistent=True))
                before = self.cost
                for thing in (thing for thing in found if thing[COUNTED] == NO):
                    for _ in ("its put", "its flag"):
                        self.run(design.consume(thing))
            case _:
                self._visit()
                if isinstance(design, Ours) and self.cost.write_units > before.write_units:
                    self._visit()
                    self._visit(SETTINGS.keep_ms)
        return self.cost - before

    def _visit(self, after_ms: int = SETTINGS.allowed_lateness_ms) -> None:
        """One visit of the design's scheduled work, so much later."""
        self._now_ms += after_ms + 1
        self.run(self.design.housekeep(COUNTER, REGION))
