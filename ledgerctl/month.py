"""A month's bill of a workload, by arithmetic on measured units and AWS's list prices; right to a tenth.

Rule 1: Units and sizes are what `make bench` measured on 2026-11-23. These are the only prices: docs/costs.md states
the same and prints three bills, and a test holds them against `Workload.bill`.
Rule 2: Changes come evenly to all counters, at random times, none late; each counter has a lane for each of its shards
in each Region.
Rule 3: A delta that is deleted costs the units of its put once more; one that is kept costs its bytes, each month that
it is there.
Rule 4: Every Region is billed at these prices. A write is charged again in every further Region; a read is charged
where it is made. A GB is 10^9 bytes. Free tiers, taxes and reserved capacity are left out.

BILLING https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/global-tables-billing.html
SIZES https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
"""

import math
from dataclasses import dataclass

SECONDS = 730 * 3600
"""Of a month."""

ITEM_OVERHEAD_BYTES, REPLICA_OVERHEAD_BYTES = 100, 48
"""What storage is charged for an item beside its own bytes, and for one of a global table besides (SIZES)."""


@dataclass(frozen=True, slots=True)
class Prices:
    """On-demand prices of one Region in US dollars: a million units, a GB-month with point-in-time recovery."""

    region: str = "us-east-1"
    since: str = "1 November 2024"
    page: str = "https://aws.amazon.com/dynamodb/pricing/on-demand/"
    write: float = 0.625
    replicated_write: float = 0.625
    read: float = 0.125
    storage: float = 0.45


PRICES = Prices()
LAMBDA_REQUEST, LAMBDA_GB_S = 0.20e-6, 0.0000133334  # https://aws.amazon.com/lambda/pricing/, arm64
SQS_REQUEST = 0.40e-6  # https://aws.amazon.com/sqs/pricing/
HTTP_REQUEST = 1.00e-6  # https://aws.amazon.com/api-gateway/pricing/
LOG_GB, METRIC, ALARM, DASHBOARD = 0.50, 0.30, 0.10, 3.00  # https://aws.amazon.com/cloudwatch/pricing/
TRAFFIC_GB = 0.02  # between Regions

DELTA_BYTES, PACK_BYTES, ENTRY_BYTES, SEGMENT_BYTES = 69, 100, 24, 85  # a pack and a segment without their entries
LANE_BYTES, TRAFFIC_BYTES, LOG_BYTES = 240, 600, 1_650  # beside a lane's changes; of a change; of a call that logs
FOLD_MIN, FOLDED = 32, 63  # changes that are folded at once, at least and in a quiet lane, beside those of a minute
COMMIT_UNITS, ENTRY_UNITS, FULL_UNITS = 4.0, 0.047, 0.04725  # of a fold, of a change in it, of one in the largest
VISIT_UNITS, TAIL_READS = 7.0, 2.4  # read units of a visit that folds; how often compaction reads a delta
WAITS_S, HELD_S = 40, 1_500  # until a change is folded, and until it is deleted
RING_S, VISIT_S, BATCH_S, API_S = 9.7e-5, 0.023, 0.06, 0.010  # of a record, a message, a batch of changes, a request
FUNCTION_GB, COMPACT_GB = 0.5, 1.0
MESSAGE_REQUESTS, POLLS_S = 0.3, 15 / 60  # sent, received and deleted by the ten; five long polls of 20 s
RING_CALLS_S, BATCH_MAX, SWEEPS = 2.0, 80, 30.4  # calls a second of a busy stream; a lane is swept once a day
ALARM_METRICS, METRICS = 41, 35  # of a Region: what its alarms look at, and metrics of the functions' own
PARTITION_WRITE_UNITS, TABLE_UNITS_MAX = 1_000, 40_000
"""Of a partition a second, and of a table, unless AWS raises its quota:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html"""


def written(units: float, regions: int) -> float:
    """Dollars for write units that are written in one Region and replicated to the others."""
    return units * (PRICES.write + (regions - 1) * PRICES.replicated_write) / 1e6


def read(units: float) -> float:
    return units * PRICES.read / 1e6


def stored(item_bytes: float, items: float, regions: int) -> float:
    """Dollars a month for so many items of so many bytes in all, in each Region."""
    overhead = ITEM_OVERHEAD_BYTES + (REPLICA_OVERHEAD_BYTES if regions > 1 else 0)
    return (item_bytes + items * overhead) / 1e9 * regions * PRICES.storage


def changes_max(*, clean: bool, pack: int = 1) -> int:
    """Changes a second that a lane takes for good: by the partition of its deltas, or by that of its segments."""
    return int(PARTITION_WRITE_UNITS / max((2 if clean else 1) * _put_units(pack), FULL_UNITS))


def _bytes(pack: int) -> float:
    """A change's share of its item."""
    return DELTA_BYTES if pack == 1 else PACK_BYTES / pack + ENTRY_BYTES


def _put_units(pack: int) -> float:
    """A change's share of the put of its item, and of the delete."""
    return math.ceil(_bytes(pack) * pack / 1024) / pack


@dataclass(frozen=True, slots=True)
class Workload:
    """changes, reads and http: a month, all Regions together; reads are strongly consistent ones that reach the table,
    http are requests of the HTTP API: of reads, and what is more than the reads are changes. The other changes come
    through the queue. pack: changes of a lane that come together, in one item. clean: whether deltas are deleted.
    """

    changes: float
    reads: float
    counters: int
    regions: int
    after_months: int = 12
    shards: int = 1
    pack: int = 1
    clean: bool = True
    http: float = 0.0

    @property
    def lanes(self) -> int:
        """In all Regions together."""
        return self.counters * self.shards * self.regions

    @property
    def lane_rate(self) -> float:
        """Changes of a lane, a second."""
        return self.changes / self.lanes / SECONDS

    @property
    def is_folded(self) -> bool:
        """Whether a lane ever has enough changes for a fold."""
        return self.changes / self.lanes * self.after_months >= FOLD_MIN

    @property
    def folded(self) -> float:
        """Changes of a fold: those of the minute in which a lane rings once come on top."""
        return FOLDED + 60 * self.lane_rate

    @property
    def write_units(self) -> float:
        """Of a change over its life, in each Region."""
        fold = COMMIT_UNITS / self.folded + ENTRY_UNITS if self.is_folded else 0.0
        return _put_units(self.pack) * (2 if self.clean and self.is_folded else 1) + fold

    @property
    def read_units(self) -> float:
        """Of a read of a counter: of each of its lanes the checkpoint, and the tail by 4 KB."""
        tail = WAITS_S * (1 + self.lane_rate) * _bytes(self.pack) / 4096
        return self.shards * self.regions * (1 + max(1.0, tail + 0.5))

    def bill(self) -> dict[str, float]:
        """Dollars a month, line by line."""
        seconds, of_gb = self.regions * SECONDS, FUNCTION_GB * LAMBDA_GB_S
        visit = VISIT_UNITS / self.folded + TAIL_READS * _bytes(self.pack) / 4096 if self.is_folded else 0.0
        sweeps = self.lanes * SWEEPS if self.changes else 0.0
        messages = self.changes / max(FOLD_MIN + 60 * self.lane_rate, self.pack) + sweeps
        queued = max(0.0, self.changes - max(0.0, self.http - self.reads))
        batches = queued / min(BATCH_MAX, 2 + 5 * queued / seconds)  # two messages in a quiet one
        called = batches * (LAMBDA_REQUEST + BATCH_S * of_gb) + self.http * (LAMBDA_REQUEST + API_S * of_gb)
        polls = seconds * POLLS_S * SQS_REQUEST  # of an idle queue
        message = MESSAGE_REQUESTS * SQS_REQUEST
        look = message + VISIT_S * COMPACT_GB * LAMBDA_GB_S
        records = self.changes / self.pack
        calls = -seconds * RING_CALLS_S * math.expm1(-records / seconds / RING_CALLS_S)
        ring = records * RING_S * of_gb + calls * LAMBDA_REQUEST
        looked = read(messages + sweeps)  # the sweep's look reads twice as much
        return {
            "changes": written(self.changes * self.write_units, self.regions),
            "reads": read(self.reads * self.read_units),
            "finding": polls + ring + messages * look + looked,
            "compactor": read(self.changes * visit),
            "storage": self._storage(),
            "queue": polls + queued * message + called,
            "http": self.http * HTTP_REQUEST,
            "logs": (self.http + batches + messages) * LOG_BYTES / 1e9 * LOG_GB,
            "alarms": self.regions * (ALARM_METRICS * ALARM + METRICS * METRIC + DASHBOARD),
        }

    def _storage(self) -> float:
        """Segments for ever, deltas for a while or for ever, and the traffic between Regions."""
        changes = deltas = self.changes * self.after_months
        folded = 0.0
        if self.is_folded:
            segments = changes / self.folded
            folded = stored(changes * ENTRY_BYTES + segments * SEGMENT_BYTES, segments, self.regions)
            folded += stored(self.lanes * LANE_BYTES, self.lanes * 3, self.regions)
            if self.clean:
                deltas = min(changes, self.lanes * (2 * FOLDED + HELD_S * self.lane_rate))
        traffic = self.changes * (self.regions - 1) * TRAFFIC_BYTES / 1e9 * TRAFFIC_GB
        return traffic + folded + stored(deltas * _bytes(self.pack), deltas / self.pack, self.regions)
