"""A month's DynamoDB bill of a workload, and whether the deployed service can serve it at all.

Rule 1: Lanes are lane.py's, prices bill.py's.
Rule 2: What is assumed beyond them stands here, once, with a name. Every counter changes as often as every other, and
each has a lane for each of its shards in each Region. Functions, queues, alarms and the traffic between Regions are
left out: docs/costs.md has them.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from ledger.settings import Settings
from ledger.units import READ_UNIT_BYTES
from ledgerctl import lane
from ledgerctl.bill import Usage, million_changes, million_reads, storage_month
from ledgerctl.sizes import MARK_BYTES, PAGE_BYTES

SECONDS = 730 * 3600  # of a month
PLANS, FINDS = SECONDS / 60, 730 * 4
"""Runs of plan and of find in a month and Region."""

LANES_MAX = 5_000
"""Lanes that plan sends to the compactor, a minute and Region."""

MARKS_MAX = 350_000
"""Above so many marks in a Region, reading them takes all of plan's 30 seconds, and nothing is sent any more."""

TABLE_UNITS_MAX = 40_000
"""Write units a second of a table, unless AWS raises its quota:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html"""

MARK_BUCKETS = 8
FIND_BYTES = 20 * PAGE_BYTES
"""What a run of find scans at most."""

LOOK_UNITS = 1.0
"""Read units of find for a lane whose deltas it meets: its mark and its checkpoint, eventually consistent."""

VERIFY_ONE_IN = 100
"""Lanes that find meets for one that is verified."""

VERIFY_UNITS = 4
"""Read units of a verify beside the lane's segments: the checkpoint, its segment, the tail, the deltas below."""


@dataclass(frozen=True, slots=True)
class Workload:
    """changes and reads: a month, all Regions together; reads are strongly consistent ones that reach the table.

    pack: changes of a lane that come together, in one item.
    """

    changes: float
    reads: float
    counters: int
    regions: int
    after_months: int = 12
    shards: int = 1
    pack: int = 1

    @property
    def settings(self) -> Settings:
        names = tuple(f"eu-west-{n + 1}" for n in range(self.regions))
        return Settings(table="any", region=names[0], regions=names)

    @property
    def lanes(self) -> int:
        """In all Regions together."""
        return self.counters * self.shards * self.regions

    @property
    def lane_rate(self) -> float:
        """Changes of a lane, a second."""
        return self.changes / self.lanes / SECONDS

    @property
    def lane_max(self) -> int:
        """Changes a second that a lane takes for good."""
        return lane.changes_max(self.settings, self.pack)

    @property
    def shards_needed(self) -> int:
        """The fewest shards of a counter whose lanes take these changes for good."""
        return max(1, math.ceil(self.changes / SECONDS / self.counters / self.regions / self.lane_max))

    @property
    def is_folded(self) -> bool:
        return self.changes / self.lanes * self.after_months >= self.settings.fold_min

    def load(self) -> lane.Load:
        """Of each lane. Raises ValueError without changes, and for more than a lane takes."""
        return lane.load(self.lane_rate, self.settings, pack=self.pack, ever_folds=self.is_folded)


@dataclass(frozen=True, slots=True)
class Bill:
    """Dollars a month."""

    changes: float
    marks: float
    reads: float
    compactor: float
    storage: float

    @property
    def total(self) -> float:
        return math.fsum(asdict(self).values())


def read_units(load: Workload) -> float:
    """Of a read of a counter: all its lanes."""
    return load.shards * load.regions * (load.load().a_read if load.changes else 2.0)


def bill_of(load: Workload) -> Bill:
    """The bill of a workload at bill.py's prices. Raises ValueError when a lane cannot take its changes."""
    reads = load.reads / 1e6 * million_reads(Usage(0, read_units(load)))
    if not load.changes:
        return Bill(0.0, 0.0, reads, million_reads(Usage(0, plan_units(0) * load.regions)) / 1e6, 0.0)
    of_lane, millions = load.load(), load.changes / 1e6
    byte_count, item_count = of_lane.resident
    resident = Usage(0, 0, item_bytes=byte_count, items=item_count)
    found, pages = find_units(load, of_lane)
    compactor_units = load.lanes * of_lane.visit_units * SECONDS
    compactor_units += load.regions * (plan_units(load.lanes / load.regions * of_lane.marked) + found)
    return Bill(
        changes=millions * million_changes(Usage(of_lane.change_units / of_lane.rate, 0), load.regions),
        marks=millions * million_changes(Usage(of_lane.mark_units / of_lane.rate, 0), load.regions),
        reads=reads,
        compactor=compactor_units / 1e6 * million_reads(Usage(0, 1))
        + load.regions * pages / 1e6 * million_changes(Usage(1, 0), load.regions),
        storage=storage_month(of_lane.usage, load.changes * load.after_months, load.regions)
        + storage_month(resident, load.lanes, load.regions),
    )


def plan_units(marks: float) -> float:
    """The read units of a Region's plan in a month, with so many marks in its table at any time."""
    of_bucket = marks * MARK_BYTES / MARK_BUCKETS / READ_UNIT_BYTES
    return PLANS * MARK_BUCKETS * max(1.0, of_bucket) / 2


def find_units(load: Workload, of_lane: lane.Load) -> tuple[float, float]:
    """(read units, pages) of a Region's find in a month: each page costs a write, too, the place to go on from."""
    left = load.changes * load.after_months / load.lanes
    of_segments = of_lane.usage.item_bytes * left if of_lane.segment else 0.0
    whole = load.lanes * (of_lane.resident[0] + of_lane.usage.item_bytes * left)
    scanned = min(FIND_BYTES, whole)
    met = load.lanes / load.regions * scanned / whole  # of this Region; find passes the others by
    verify = (VERIFY_UNITS + of_segments / READ_UNIT_BYTES) / VERIFY_ONE_IN
    pages = math.ceil(scanned / PAGE_BYTES)
    return FINDS * (1 + scanned / READ_UNIT_BYTES / 2 + met * (LOOK_UNITS + verify)), FINDS * pages


def beyond(load: Workload) -> Iterator[str]:
    """What the deployed service, or the table, cannot do of this load; its price is of what would be, if they could."""
    if not load.changes:
        return
    of_lane, lanes = load.load(), load.lanes / load.regions
    due, marks, units = lanes * of_lane.visits * 60, lanes * of_lane.marked, load.lanes * of_lane.write_units
    if due > LANES_MAX:
        yield (
            f"{due:,.0f} lanes are due a minute in each Region; plan sends {LANES_MAX:,}. "
            "The others wait, their tails grow without end, and reads with them."
        )
    if marks > MARKS_MAX:
        yield (
            f"{marks:,.0f} lanes have a mark in each Region; above about {MARKS_MAX:,} plan does not come to an end, "
            "and nothing is compacted any more."
        )
    if units > TABLE_UNITS_MAX:
        yield f"The table takes {units:,.0f} write units a second; above {TABLE_UNITS_MAX:,} AWS must raise its quota."
