"""`cost`: what a workload costs a month, before it exists: measured units times AWS's list prices, right to a tenth.

Rule 1: Units and sizes are what `make bench` measured on 2026-11-23. These are the only prices: docs/costs.md states
the same and prints three bills, and a test holds them against `Load.bill`.
Rule 2: Changes come evenly to all counters, at random times, none late; each counter has a lane for each of its shards
in each Region.
Rule 3: A delta that is deleted costs the units of its put once more; one that is kept costs its bytes, each month that
it is there.
Rule 4: Every Region is billed at these prices. A write is charged again in every further Region; a read is charged
where it is made. A GB is 10^9 bytes. Free tiers, taxes and reserved capacity are left out.
Rule 5: A load that is beyond a lane or the table is named before its price.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, NamedTuple

import typer

from ledger.lane.add import PACK_CHANGES
from ledger.settings import SHARDS_MAX
from ledgerctl.call import Call
from ledgerctl.command import TABLE, command
from ledgerctl.failures import Wrong


class Prices(NamedTuple):
    """On-demand prices of one Region in US dollars: a million units, a GB-month with point-in-time recovery."""

    region: str = "us-east-1"
    since: str = "1 November 2024"
    page: str = "https://aws.amazon.com/dynamodb/pricing/on-demand/"
    write: float = 0.625
    replicated_write: float = 0.625
    read: float = 0.125
    storage: float = 0.45


PRICES = Prices()
READ = PRICES.read / 1e6
LAMBDA_REQUEST, LAMBDA_GB_S = 0.20e-6, 0.0000133334  # https://aws.amazon.com/lambda/pricing/, arm64
SQS_REQUEST = 0.40e-6  # https://aws.amazon.com/sqs/pricing/
HTTP_REQUEST = 1.00e-6  # https://aws.amazon.com/api-gateway/pricing/
LOG_GB, METRIC, ALARM, DASHBOARD = 0.50, 0.30, 0.10, 3.00  # https://aws.amazon.com/cloudwatch/pricing/
TRAFFIC_GB = 0.02  # between Regions

SECONDS = 730 * 3600  # of a month
ITEM_OVERHEAD_BYTES, REPLICA_OVERHEAD_BYTES = 100, 48  # stored beside an item's own, and besides in a global table:
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
DELTA_BYTES, PACK_BYTES, ENTRY_BYTES, SEGMENT_BYTES = 69, 100, 24, 85  # a pack and a segment without their entries
TRAFFIC_BYTES, LOG_BYTES = 600, 1_650  # of a change; of a call that logs
FOLD_MIN, FOLDED = 32, 63  # changes that are folded at once, at least and in a quiet lane, beside those of a minute
COMMIT_UNITS, ENTRY_UNITS, FULL_UNITS = 4.0, 0.047, 0.04725  # of a fold, of a change in it, of one in the largest
VISIT_UNITS, TAIL_READS = 7.0, 2.4  # read units of a visit that folds; how often compaction reads a delta
WAITS_S = 40  # until a change is folded
RING_S, VISIT_S, BATCH_S, API_S = 9.7e-5, 0.023, 0.06, 0.010  # of a record, a message, a batch of changes, a request
FUNCTION_GB, COMPACT_GB = 0.5, 1.0
MESSAGE_REQUESTS, POLLS_S = 0.3, 15 / 60  # sent, received and deleted by the ten; five long polls of 20 s
RING_CALLS_S, BATCH_MAX, SWEEPS = 2.0, 80, 30.4  # calls a second of a busy stream; a lane is swept once a day
ALARM_METRICS, METRICS = 41, 35  # of a Region: what its alarms look at, and metrics of the functions' own
PARTITION_WRITE_UNITS, TABLE_UNITS_MAX = 1_000, 40_000
"""Of a partition a second, and of a table, unless AWS raises its quota:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html"""

AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kMG]?)(/s)?")
SCALE = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


def written(units: float, regions: int) -> float:
    """Dollars for write units that are written in one Region and replicated to the others."""
    return units * (PRICES.write + (regions - 1) * PRICES.replicated_write) / 1e6


def stored(item_bytes: float, items: float, regions: int) -> float:
    """Dollars a month for so many items of so many bytes in all, in each Region."""
    overhead = ITEM_OVERHEAD_BYTES + (REPLICA_OVERHEAD_BYTES if regions > 1 else 0)
    return (item_bytes + items * overhead) / 1e9 * regions * PRICES.storage


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
    after_months: int
    shards: int
    pack: int
    clean: bool
    http: float


class Load:
    """What a workload is for one of its lanes, and a change's share of what is written and read for it."""

    def __init__(self, work: Workload) -> None:
        self.work = work
        self.lanes = work.counters * work.shards * work.regions
        self.rate = work.changes / self.lanes / SECONDS
        self.is_folded = work.changes / self.lanes * work.after_months >= FOLD_MIN  # else a fold never has enough
        self.folded = FOLDED + 60 * self.rate  # by one fold: a lane rings once a minute
        self.bytes = DELTA_BYTES if work.pack == 1 else PACK_BYTES / work.pack + ENTRY_BYTES
        put = math.ceil(self.bytes * work.pack / 1024) / work.pack
        fold = COMMIT_UNITS / self.folded + ENTRY_UNITS if self.is_folded else 0.0
        self.write_units = put * (2 if work.clean and self.is_folded else 1) + fold
        tail = WAITS_S * (1 + self.rate) * self.bytes / 4096
        self.read_units = work.shards * work.regions * (1 + max(1.0, tail + 0.5))  # the checkpoint, the tail by 4 KB
        self.rate_max = int(PARTITION_WRITE_UNITS / max((2 if work.clean else 1) * put, FULL_UNITS))

    def bill(self) -> dict[str, tuple[str, float]]:
        """Each line: what it is for, and dollars a month."""
        work, seconds, of_gb = self.work, self.work.regions * SECONDS, FUNCTION_GB * LAMBDA_GB_S
        sweeps = self.lanes * SWEEPS if work.changes else 0.0
        messages = work.changes / max(FOLD_MIN + 60 * self.rate, work.pack) + sweeps
        visit = VISIT_UNITS / self.folded + TAIL_READS * self.bytes / 4096 if self.is_folded else 0.0
        queued = max(0.0, work.changes - max(0.0, work.http - work.reads))
        batches = queued / min(BATCH_MAX, 2 + 5 * queued / seconds)  # two messages in a quiet one
        called = batches * (LAMBDA_REQUEST + BATCH_S * of_gb) + work.http * (LAMBDA_REQUEST + API_S * of_gb)
        polls, message = seconds * POLLS_S * SQS_REQUEST, MESSAGE_REQUESTS * SQS_REQUEST  # of an idle queue; of one
        look = message + VISIT_S * COMPACT_GB * LAMBDA_GB_S
        records = work.changes / work.pack
        calls = -seconds * RING_CALLS_S * math.expm1(-records / seconds / RING_CALLS_S)
        ring = records * RING_S * of_gb + calls * LAMBDA_REQUEST
        looks = messages + sweeps  # the sweep's look reads twice as much
        every = work.changes * work.after_months
        segments = every / self.folded if self.is_folded else 0.0
        deltas = min(every, self.lanes * 2 * FOLDED) if work.clean and self.is_folded else every
        folded = stored(every * ENTRY_BYTES + segments * SEGMENT_BYTES, segments, work.regions) if segments else 0.0
        traffic = work.changes * (work.regions - 1) * TRAFFIC_BYTES / 1e9 * TRAFFIC_GB
        deltas_cost = stored(deltas * self.bytes, deltas / work.pack, work.regions)
        changes, reads = written(work.changes * self.write_units, work.regions), work.reads * self.read_units * READ
        finding = polls + ring + messages * look + looks * READ
        alarms = work.regions * (ALARM_METRICS * ALARM + METRICS * METRIC + DASHBOARD)
        logs = (work.http + batches + messages) * LOG_BYTES / 1e9 * LOG_GB
        return {
            "changes": (f"changes: {self.write_units:.2f} write units in each Region", changes),
            "reads": (f"reads: {self.read_units:,.1f} read units each, with the tail", reads),
            "finding": ("finding work: ring, its queue, looks, the sweep", finding),
            "compactor": ("visits of the compactor: their reads", work.changes * visit * READ),
            "storage": (f"storage after {work.after_months} months; traffic", folded + deltas_cost + traffic),
            "queue": ("the changes' queue, its function and the API's", polls + queued * message + called),
            "http": ("HTTP API", work.http * HTTP_REQUEST),
            "logs": ("logs", logs),
            "alarms": ("alarms, metrics, dashboards", alarms),
        }

    def beyond(self) -> Iterator[str]:
        """What a lane or the table cannot take; the price is of what would be, if it could."""
        units = self.work.changes / SECONDS * self.write_units
        if self.rate > self.rate_max:
            shards = math.ceil(self.rate * self.work.shards / self.rate_max)
            spread = f"--shards {shards:,} spreads them"
            remedy = spread if shards <= SHARDS_MAX else f"a counter has {SHARDS_MAX:,} shards at most"
            yield f"Each lane gets {self.rate:,.0f} changes a second and takes {self.rate_max:,} for good: {remedy}."
        if units > TABLE_UNITS_MAX:
            above = f"above {TABLE_UNITS_MAX:,} AWS must raise its quota"
            yield f"The table takes {units:,.0f} write units a second; {above}."


def amount(text: str) -> float:
    """A month's number: 250000, 10M, or a rate such as 40/s."""
    match = AMOUNT.fullmatch(text.replace(",", ""))
    if match is None:
        raise Wrong("BadAmount", f"{text!a} is no amount.", "Write a number a month, such as 250000 or 10M, or 40/s.")
    number, scale, rate = match.groups()
    return float(number) * SCALE[scale] * (SECONDS if rate else 1)


@command("cost", TABLE)
def cost(
    call: Call,
    changes: Annotated[str, typer.Option(help="A month, such as 10M, or a rate, such as 40/s.")],
    reads: Annotated[str, typer.Option(help="Strong reads that reach the table, in the same way.")] = "0",
    http: Annotated[str, typer.Option(help="Requests of the HTTP API: of reads, the rest of changes.")] = "0",
    counters: Annotated[int, typer.Option(min=1, help="How many counters take them, each as many.")] = 1,
    shards: Annotated[int, typer.Option(min=1, max=SHARDS_MAX, help="How many shards each counter has.")] = 1,
    in_regions: Annotated[int, typer.Option(min=1, max=20, help="In how many Regions the table is.")] = 1,
    pack: Annotated[int, typer.Option(min=1, max=PACK_CHANGES, help="How many changes come in one pack.")] = 1,
    after_months: Annotated[int, typer.Option(min=1, help="How many months of changes are stored by then.")] = 12,
    clean: Annotated[bool, typer.Option(help="Delete folded deltas, or keep them.")] = True,
) -> None:
    """Work out a month's bill, and name its largest line. Asks AWS nothing."""
    per_month = amount(changes), amount(reads)
    work = Workload(*per_month, counters, in_regions, after_months, shards, pack, clean, amount(http))
    load = Load(work)
    too_much, bill = list(load.beyond()), load.bill()
    total, largest = sum(line for _, line in bill.values()), max(bill, key=lambda name: bill[name][1])
    dollars = {name: round(line, 2) for name, (_, line) in bill.items()} | {"total": round(total, 2)}
    fields = {"workload": asdict(work), "a_lane_takes": load.rate_max, "beyond": too_much}
    call.document(fields | {"dollars_a_month": dollars, "largest": largest, "prices": PRICES._asdict()})
    counts = f"counters: {counters:,}, shards: {shards:,}, Regions: {in_regions}"
    call.say(f"{work.changes:,.0f} changes and {work.reads:,.0f} reads a month; {counts}")
    call.say(f"{pack} to a pack: a lane takes {load.rate_max:,} changes a second for good")
    for line in too_much:
        call.say(f"{line} What follows is the price if it could.", style="bold red")
    rows = [(text, f"{line:,.2f}") for text, line in bill.values()]
    call.table_of(("", "dollars a month"), [*rows, ("all of it", f"{total:,.2f}")])
    if work.changes:
        call.say(f"{total / work.changes * 1e6:,.2f} dollars for a million changes")
    call.say(f"the largest line: {bill[largest][0]}")
    call.say(f"Prices of {PRICES.region} since {PRICES.since}, without free tiers and taxes; right to a tenth.", "dim")
