"""`cost`: what a workload costs a month, before it exists: measured units times AWS's list prices,
right to a tenth.

Rule 1: `make bench` measured the units on 2026-11-23. docs/bills.txt states the same prices,
docs/costs.md three bills, and a test holds them against this.
Rule 2: Changes come evenly to all counters, none late, and enough of them to fold; each counter has
a lane for each of its shards in each Region.
Rule 3: A deleted delta costs the units of its put once more; a kept one costs its bytes, each month
that it is there. Storage is that after a year.
"""

import math
import re
from typing import Annotated, NamedTuple

import typer

from ledger.core.settings import SHARDS_MAX
from ledger.lane.add import PACK_CHANGES
from ledgerctl.call import Call
from ledgerctl.command import command
from ledgerctl.failures import Wrong

PAGE = "https://aws.amazon.com/dynamodb/pricing/on-demand/"
# of us-east-1: a million units; a GB-month with recovery
# Rule 4: every Region has these prices. AWS charges a write again in every further Region, and a
# read where it is made. A GB is 10^9 bytes. Free tiers, taxes and reserved capacity are left out.
PRICES = {"write": 0.625, "read": 0.125, "storage": 0.45}

# What else a thing takes, in dollars, by the prices of docs/bills.txt:
MESSAGE = 0.55e-6  # of work: sent and received by the ten, 23 ms of a function of 1 GB, a look
VISITED = 0.02e-6  # a change: what a visit reads
QUEUED = 0.15e-6  # a change of the queue: sent and received by the ten, 60 ms of 512 MB a batch
RUNG = 0.30e-6  # an invocation of ring: 15 ms of 512 MB
# of the HTTP API: 10 ms of 512 MB, and an answer of 700 bytes to the internet
REQUEST = 1.267e-6 + 700 * 0.09e-9
LOG_BYTE = 0.50e-9 + 3 * 0.03e-9  # that is logged, and kept for 90 days
LOGGED, RING_LOGGED = 1650 * LOG_BYTE, 650 * LOG_BYTE  # a call of another function; one of ring
TRAFFIC = 600 * 0.02e-9  # a change, to a further Region
POLLS = 2 * 0.263  # two idle queues, a month: five long polls of 20 s each
# a Region: what its alarms look at, metrics of the functions' own, a dashboard
WATCHED = 41 * 0.10 + 31 * 0.30 + 3.00

SECONDS, MONTHS = 730 * 3600, 12  # of a month; of storage
# an item of a change; a pack without its entries; an entry of it; a change in a segment
DELTA_BYTES, PACK_BYTES, ENTRY_BYTES, FOLDED_BYTES = 69, 100, 24, 28
OVERHEAD_BYTES = 148  # stored beside an item's own, in a global table
# of a change, and in the largest fold; changes that ring once
FOLD_UNITS, LARGE_UNITS, FOLD_MIN = 0.11, 0.04725, 32
WAITS_S, SWEEPS = 40, 30.4  # until a change is folded; of a lane, a month
LANE_UNITS_MAX, TABLE_UNITS_MAX = 1_000, 40_000
"""Of a partition a second, and of a table, unless AWS raises its quota:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html"""

STREAM_SHARDS, PARTITION_UNITS = 4, 1_000
"""Of a table on demand: shards of its stream in each Region from its first day, and write units
a second of each.
"""

AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kMG]?)(/s)?")
SCALE = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


class Workload(NamedTuple):
    """changes, reads and http: a month, all Regions together; reads are strongly consistent ones
    that reach the table, http are requests of the HTTP API: of reads, and what is more than the
    reads are changes. The other changes come through the queue. pack: changes of a lane that come
    together, in one item. clean: whether deltas are deleted.
    """

    changes: float
    reads: float
    http: float
    counters: int
    shards: int
    regions: int
    pack: int
    clean: bool


def bill(work: Workload) -> tuple[int, list[str], dict[str, float]]:
    """Changes a second that a lane takes for good; what is beyond a lane or the table; dollars a
    month, by line.
    """
    changes, reads, http, counters, shards, regions, pack, clean = work
    lanes, stored_bytes = (
        counters * shards * regions,
        DELTA_BYTES if pack == 1 else PACK_BYTES / pack + ENTRY_BYTES,
    )
    rate, queued = changes / lanes / SECONDS, max(0.0, changes - max(0.0, http - reads))
    put = math.ceil(stored_bytes * pack / 1024) / pack * (2 if clean else 1)
    rate_max = int(LANE_UNITS_MAX / max(put, LARGE_UNITS))
    beyond = []
    if rate > rate_max:
        needed, most = (
            math.ceil(rate * shards / rate_max),
            f"a counter has {SHARDS_MAX:,} shards at most",
        )
        remedy = f"--shards {needed:,} spreads them" if needed <= SHARDS_MAX else most
        beyond.append(
            f"Each lane gets {rate:,.0f} changes a second and takes {rate_max:,} for good: "
            f"{remedy}."
        )
    if (units := changes / SECONDS * put) > TABLE_UNITS_MAX:
        above = f"above {TABLE_UNITS_MAX:,} AWS must raise its quota"
        beyond.append(f"The table takes {units:,.0f} write units a second; {above}.")
    tail = WAITS_S * (1 + rate) * stored_bytes / 4096
    messages = changes / max(FOLD_MIN + 60 * rate, pack) + (lanes * SWEEPS if changes else 0)
    rings = _rings(changes / pack / regions, max(STREAM_SHARDS, units / PARTITION_UNITS)) * regions
    kept = FOLDED_BYTES + (0 if clean else stored_bytes + OVERHEAD_BYTES / pack)
    return (
        rate_max,
        beyond,
        {
            "changes": changes * (put + FOLD_UNITS) * regions * PRICES["write"] / 1e6,
            # the tail by 4 KB
            "reads": reads * shards * regions * (1 + max(1.0, tail + 0.5)) * PRICES["read"] / 1e6,
            "compaction": messages * MESSAGE + changes * VISITED + rings * RUNG,
            "storage": changes
            * (MONTHS * kept * regions * PRICES["storage"] / 1e9 + (regions - 1) * TRAFFIC),
            "queues": regions * POLLS + queued * QUEUED,
            "http": http * REQUEST,
            "logs": (http + queued / 50 + messages) * LOGGED + rings * RING_LOGGED,
            "alarms": regions * WATCHED,
        },
    )


def _rings(records: float, stream_shards: float) -> float:
    """The invocations of ring in a Region: a batch begins with a record, and goes on for a
    second in its shard.
    """
    rate = records / SECONDS / stream_shards
    return stream_shards * SECONDS * rate / (1 + rate)


def amount(text: str) -> float:
    """A month's number: 250000, 10M, or a rate such as 40/s."""
    match = AMOUNT.fullmatch(text.replace(",", ""))
    if match is None:
        raise Wrong(
            "BadAmount",
            f"{text!a} is no amount.",
            "Give a number for a month, such as 250000 or 10M, or for a second, such as 40/s.",
        )
    number, scale, rate = match.groups()
    return float(number) * SCALE[scale] * (SECONDS if rate else 1)


@command("cost")
def cost(
    call: Call,
    changes: Annotated[
        str, typer.Option(help="Changes a month, such as 10M, or a second, such as 40/s.")
    ],
    reads: Annotated[
        str, typer.Option(help="Strong reads that reach the table, written like --changes.")
    ] = "0",
    http: Annotated[
        str,
        typer.Option(help="Requests of the HTTP API: as many reads as --reads, the rest changes."),
    ] = "0",
    counters: Annotated[
        int, typer.Option(min=1, help="How many counters share the changes, in equal parts.")
    ] = 1,
    shards: Annotated[
        int, typer.Option(min=1, max=SHARDS_MAX, help="How many shards each counter has.")
    ] = 1,
    in_regions: Annotated[
        int, typer.Option(min=1, max=20, help="How many Regions have the table.")
    ] = 1,
    pack: Annotated[
        int, typer.Option(min=1, max=PACK_CHANGES, help="How many changes share one pack.")
    ] = 1,
    clean: Annotated[bool, typer.Option(help="Delete folded deltas, or keep them.")] = True,
) -> None:
    """Work out a month's bill, and name its largest line. AWS is not called."""
    # Rule 5: `cost` names a load that is beyond a lane or the table before its price.
    work = Workload(
        amount(changes), amount(reads), amount(http), counters, shards, in_regions, pack, clean
    )
    rate_max, beyond, lines = bill(work)
    largest, total = max(lines, key=lambda name: lines[name]), sum(lines.values())
    dollars = {name: round(line, 2) for name, line in (lines | {"total": total}).items()}
    fields = {"workload": work._asdict(), "a_lane_takes": rate_max, "beyond": beyond}
    call.document(
        fields | {"dollars_a_month": dollars, "largest": largest, "prices": PRICES | {"page": PAGE}}
    )
    for line in beyond:
        call.say(f"{line} The price below ignores that.", style="bold red")
    call.table_of(
        ("", "dollars a month"), [(name, f"{line:,.2f}") for name, line in dollars.items()]
    )
    call.say(f"the largest line: {largest}; a lane sustains {rate_max:,} changes a second")
    call.say("List prices of us-east-1, without free tiers and taxes; within 10 %.", "dim")
