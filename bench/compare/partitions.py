"""A model of DynamoDB's partitions: what one counter stores, refuses and costs at a steady rate of changes.

Rules: a forecast, in closed form, of a steady state; nothing in it is measured. Facts are AWS's, with their page. All
else is below under "Assumptions", which `assumptions()` prints; one that changes is changed there and in the code.

Facts:
- A partition takes 1,000 write units and 3,000 read units a second (KEYS).
- Hot items are moved apart, as far as a partition of their own; one item never has more than one partition (ADAPTIVE).
- A hot partition is split, which does not help keys that only grow: their heat is always in the last part (HEAT, KEYS).
- A new on-demand table takes 4,000 write units a second, any table twice its peak so far, within 30 minutes (DEMAND).
- A table takes 40,000 units a second unless AWS raises its quota (QUOTAS).
- Every write is charged again in every Region of a global table (BILLING), a transaction's twice (UNITS).
- A BatchWriteItem is so many writes: a delete of an item up to 1 KB is one unit, in that item's partition (BATCH).

Assumptions:
- One counter, a steady rate, the writers spread evenly over the Regions, tokens evenly over the shards.
- Adaptation is over: every item of a single-item design and every lane's deltas and segments have a partition each.
- No burst capacity: AWS promises none beyond a partition's limit.
- A throttled change is tried again until it is stored and costs nothing meanwhile; lag is how long the next change
  waits after an hour of the rate. Replication adds about a second, which is not counted.
- A transaction's write is charged twice where it is replicated, too; no page of AWS says otherwise or so.
- Conflicts are not counted, neither a transaction's on one item nor a condition's: real single-item designs do worse.
- Single items: every Region writes the same items, so each Region's copy takes the writes of all. (They also lose
  updates then; here that is not counted.) One design's N write shards are N items.
- Ours: each Region has lanes of its own. A lane's puts and deletes share one partition; its commits use another.
- What is stored must be deleted, so a lane can keep up 1,000 / 2 changes a second. Above that, clean falls behind or
  adds are throttled; the model throttles adds.
- A clean deletes without a pause, so its partition is full until it is done, and some adds are throttled for a moment.
  They are not in `throttled`; `full` is the share of time in which it can happen.
- A lane is visited every minute if `fold_min` deltas wait, one visit at a time, of 120 s at most, clean first; as many
  functions run as there are lanes. One core folds 20,000 deltas a second. `Settings` are the defaults.
- The table is charged on demand at the prices of infra/ledgerctl/bill.py; functions, queues and storage are left out.

KEYS https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
ADAPTIVE https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/burst-adaptive-capacity.html
HEAT https://aws.amazon.com/blogs/database/part-3-scaling-dynamodb-how-partitions-hot-keys-and-split-for-heat-impact-performance/
DEMAND https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html
QUOTAS https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
BILLING https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/global-tables-billing.html
UNITS https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
BATCH https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from bench.compare import lane
from bench.units import TRANSACTIONAL
from infra.ledgerctl.bill import Usage, million_changes
from ledger.settings import Settings

WRITE_UNITS = 1_000  # of a partition, a second (KEYS)
READ_UNITS = 3_000
NEW_TABLE_UNITS = 4_000  # write units a second (DEMAND)
DOUBLING_MINUTES = 30
QUOTA_UNITS = 40_000  # write units a second (QUOTAS)

HOUR_S, DAY_S = 3_600, 86_400
SETTINGS = Settings(table="model", region="eu-west-1")

Spend = Callable[[float], tuple[float, float]]
"""Changes a second that a lane or item stores -> its write units (in each Region), the read units of its compaction."""


@dataclass(frozen=True, slots=True)
class Design:
    """A way to count, as a partition sees it.

    hot_units: the write units that a change asks of the partition of its lane or item. spend: what it costs in all.
    lanes_by_region: whether each Region writes items of its own, or all write the same.
    """

    name: str
    hot_units: float
    spend: Spend
    lanes_by_region: bool = False

    def lanes(self, shards: int, regions: int) -> int:
        """How many partitions take the changes of one counter."""
        return shards * regions if self.lanes_by_region else shards


def single_item(name: str, hot_units: float, other_units: float = 0) -> Design:
    """A design whose changes all go to one item, or to one of N shards; `other_units` go to items that are not hot."""
    return Design(name, hot_units, lambda rate: (rate * (hot_units + other_units), 0.0))


def _ours(rate: float) -> tuple[float, float]:
    load = lane.load(rate, SETTINGS, WRITE_UNITS)
    return load.write_units, load.read_units


OURS = Design("this library", lane.HOT_UNITS, _ours, lanes_by_region=True)
ADD = single_item("atomic ADD", 1)
TOKEN = single_item("transaction, client token", TRANSACTIONAL)
MARKER = single_item("transaction, marker", TRANSACTIONAL, other_units=TRANSACTIONAL)
DESIGNS = (OURS, ADD, TOKEN, MARKER)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What one counter does at a rate.

    stored: changes a second. throttled: the share of changes that no partition has room for. lag_s: how long the next
    change waits after an hour. table_units: the table's write units a second, in each Region. dollars_a_day: of all.
    """

    design: Design
    rate: float
    shards: int
    regions: int
    stored: float
    throttled: float
    lag_s: float
    table_units: float
    dollars_a_day: float

    @property
    def lane_rate(self) -> float:
        """Changes a second that one lane or item stores."""
        return self.stored / self.design.lanes(self.shards, self.regions)

    @property
    def warm_up_minutes(self) -> int:
        """How long a new table throttles, whatever the partitions, until its on-demand capacity has grown to this."""
        return DOUBLING_MINUTES * max(0, math.ceil(math.log2(self.table_units / NEW_TABLE_UNITS)))

    @property
    def over_quota(self) -> bool:
        """Whether AWS must first raise the table's quota."""
        return self.table_units > QUOTA_UNITS


def predict(design: Design, rate: float, shards: int = 1, regions: int = 1) -> Forecast:
    """At `rate` changes a second, all Regions together."""
    if not (rate > 0 and shards >= 1 and regions >= 1):
        raise ValueError(f"rate={rate}, shards={shards}, regions={regions}")
    lanes = design.lanes(shards, regions)
    stored = min(rate, lanes * WRITE_UNITS / design.hot_units)
    throttled = 1 - stored / rate
    write_units, read_units = design.spend(stored / lanes)
    usage = Usage(write_units=write_units * lanes, read_units=0, compaction_read_units=read_units * lanes)
    return Forecast(
        design=design,
        rate=rate,
        shards=shards,
        regions=regions,
        stored=stored,
        throttled=throttled,
        lag_s=HOUR_S * throttled,
        table_units=write_units * lanes,
        dollars_a_day=million_changes(usage, regions) * DAY_S / 1e6,
    )


def shards_needed(design: Design, rate: float, regions: int = 1) -> int:
    """The fewest shards that throttle nothing at `rate`."""
    return max(1, math.ceil(rate * design.hot_units / WRITE_UNITS / design.lanes(1, regions)))


def reads_per_s(load: lane.Load) -> float:
    """Strongly consistent reads of a lane that the partition of its deltas serves; its compactor's are left out."""
    return READ_UNITS / load.tail_units


def assumptions() -> str:
    """What is assumed, as it stands at the top of this module."""
    return (__doc__ or "").partition("Assumptions:\n")[2].partition("\n\n")[0]
