"""A month's bill of a workload: DynamoDB, and what it takes to find work; and whether its deltas are better kept.

Rule 1: Lanes are lane.py's, prices bill.py's and finding.py's.
Rule 2: What is assumed beyond them stands here, once, with a name. Every counter changes as often as every other, and
each has a lane for each of its shards in each Region. How changes come (queue, HTTP), alarms and the traffic between
Regions are left out: docs/costs.md has them.
Rule 3: A delta that is deleted costs the units of its put once more; one that is kept costs its bytes, each month that
it is there. Whichever has cost less in all when the months that are looked at are over is chosen.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from ledger.settings import Settings
from ledgerctl import finding, lane
from ledgerctl.bill import PRICES, Usage, million_changes, million_reads, storage_month
from ledgerctl.sizes import Tail

SECONDS = 730 * 3600  # of a month

TABLE_UNITS_MAX = 40_000
"""Write units a second of a table, unless AWS raises its quota:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html"""

DIRECTORY_UNITS = 256 / 2
"""Read units of a pass of the sweep over a Region's directory, beside its lanes' names."""


@dataclass(frozen=True, slots=True)
class Workload:
    """changes and reads: a month, all Regions together; reads are strongly consistent ones that reach the table.

    pack: changes of a lane that come together, in one item. clean: whether deltas are deleted; None: what is cheaper.
    """

    changes: float
    reads: float
    counters: int
    regions: int
    after_months: int = 12
    shards: int = 1
    pack: int = 1
    clean: bool | None = None

    @property
    def settings(self) -> Settings:
        clean = self.choice.clean if self.clean is None else self.clean
        return self._settings(clean=clean)

    def _settings(self, *, clean: bool) -> Settings:
        names = tuple(f"eu-west-{n + 1}" for n in range(self.regions))
        return Settings(table="any", region=names[0], regions=names, clean=clean)

    @property
    def choice(self) -> "Choice":
        """Whether to delete deltas, by what it costs until `after_months`, and by what a lane takes."""
        items = Tail(self.pack)
        stored = Usage(0, 0, item_bytes=items.bytes, items=1 / self.pack)
        deleted = million_changes(Usage(items.put_units, 0), self.regions)
        kept = storage_month(stored, 1e6, self.regions)
        takes = [lane.changes_max(self._settings(clean=clean), self.pack) for clean in (True, False)]
        too_hot = takes[0] < self.lane_rate <= takes[1]
        return Choice(deleted, kept, self.after_months, items.put_units, too_hot=too_hot)

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
class Choice:
    """Dollars for a million deltas in all Regions: to delete them, and to keep them for a month. units: of a delete.

    too_hot: a lane takes this rate only if nothing is deleted.
    """

    deleted: float
    kept_month: float
    months: int
    units: float
    too_hot: bool = False

    @property
    def kept(self) -> float:
        """Of keeping them until then, when they came evenly."""
        return self.kept_month * (self.months + 1) / 2

    @property
    def break_even(self) -> float:
        """After how many months of changes keeping has cost as much, in all, as deleting."""
        return 2 * self.deleted / self.kept_month - 1

    @property
    def clean(self) -> bool:
        return not self.too_hot and self.deleted <= self.kept

    @property
    def why(self) -> str:
        of = f"a million deltas\ndeleted are {self.deleted:,.3f} dollars ({self.units:.2f} write units each)"
        of += f", kept {self.kept_month:,.3f} a month:\n"
        if self.too_hot:
            return f"{of}but a lane takes so many changes only if none is deleted"
        return f"{of}in {self.months} months {self.kept:,.3f}, and as much as deleted after {self.break_even:,.0f}"


@dataclass(frozen=True, slots=True)
class Bill:
    """Dollars a month. finding: the functions and the queue that find work, and the reads of looks and of the sweep."""

    changes: float
    reads: float
    finding: float
    compactor: float
    storage: float

    @property
    def total(self) -> float:
        return math.fsum(asdict(self).values())


def read_units(load: Workload) -> float:
    """Of a read of a counter: all its lanes."""
    return load.shards * load.regions * (load.load().a_read if load.changes else 2.0)


def bill_of(load: Workload) -> Bill:
    """The bill of a workload at bill.py's and finding.py's prices. Raises ValueError when a lane cannot take its
    changes."""
    reads = load.reads / 1e6 * million_reads(Usage(0, read_units(load)))
    if not load.changes:
        return Bill(0.0, reads, finding.dollars(0, 0, SECONDS, load.regions), 0.0, 0.0)
    of_lane, millions = load.load(), load.changes / 1e6
    byte_count, item_count = of_lane.resident
    resident = Usage(0, 0, item_bytes=byte_count, items=item_count)
    looks = load.lanes * of_lane.look_units * SECONDS + load.regions * DIRECTORY_UNITS * SECONDS / finding.SWEEP_S
    messages = load.lanes * of_lane.messages * SECONDS
    return Bill(
        changes=millions * million_changes(Usage(of_lane.write_units / of_lane.rate, 0), load.regions),
        reads=reads,
        finding=looks / 1e6 * PRICES.read + finding.dollars(load.changes / load.pack, messages, SECONDS, load.regions),
        compactor=load.lanes * of_lane.visit_units * SECONDS / 1e6 * PRICES.read,
        storage=storage_month(of_lane.usage, load.changes * load.after_months, load.regions)
        + storage_month(resident, load.lanes, load.regions),
    )


def beyond(load: Workload) -> Iterator[str]:
    """What the table cannot do of this load; its price is of what would be, if it could."""
    units = load.lanes * load.load().write_units if load.changes else 0
    if units > TABLE_UNITS_MAX:
        yield f"The table takes {units:,.0f} write units a second; above {TABLE_UNITS_MAX:,} AWS must raise its quota."
