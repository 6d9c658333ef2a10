"""`python -m lab.compare.forecast`: what one counter takes and costs at a steady rate, by the partitions' limits.

Rules: a forecast, in closed form, of a steady state; nothing in it is measured. Our lanes are those of
ledgerctl/lane.py, whose head says what it assumes; a single item is arithmetic. Facts are AWS's, with their page.
All else is below under "Assumptions", which `assumptions()` prints; one that changes is changed there and in the code.

Facts:
- A partition takes 1,000 write units and 3,000 read units a second (KEYS).
- Hot items are moved apart, as far as a partition of their own; one item never has more than one partition (ADAPTIVE).
- A hot partition is split, which does not help keys that only grow: their heat is always in the last part (HEAT, KEYS).
- Every write is charged again in every Region of a global table (BILLING), a transaction's twice (UNITS).
- A delete of an item up to 1 KB is one unit, in that item's partition (UNITS).

Assumptions:
- One counter, a steady rate, the writers spread evenly over the Regions, tokens evenly over the shards.
- Adaptation is over: every item of a single-item design and every lane's deltas and segments have a partition each.
- No burst capacity: AWS promises none beyond a partition's limit.
- A transaction's write is charged twice where it is replicated, too; no page of AWS says otherwise or so.
- Conflicts are not counted, neither a transaction's on one item nor a condition's: real single-item designs do worse.
- Single items: every Region writes the same items, so each Region's copy takes the writes of all. (They also lose
  updates then; here that is not counted.) One design's N write shards are N items.
- Ours: each Region has lanes of its own, served by the deployed service, its marks included. A lane's puts and deletes
  share one partition; its commits use another. What is stored must be deleted, so a lane keeps up 1,000 / 2 changes a
  second for good. `Settings` are the defaults.
- Dollars are on demand, at the prices of ledgerctl/bill.py; functions, queues and storage are left out.

KEYS https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
ADAPTIVE https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/burst-adaptive-capacity.html
HEAT https://aws.amazon.com/blogs/database/part-3-scaling-dynamodb-how-partitions-hot-keys-and-split-for-heat-impact-performance/
BILLING https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/global-tables-billing.html
UNITS https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ledger.units import TRANSACTIONAL
from ledgerctl import lane
from ledgerctl.bill import Usage, million_changes
from ledgerctl.lane import PARTITION_READ_UNITS, PARTITION_WRITE_UNITS
from ledgerctl.workload import SECONDS, Workload

RATES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
REGIONS = (1, 2, 3)
DOLLARS_RATE = 100
LANE_RATES = (0.001, 0.01, 0.1, 1, 10, 50, 100, 250, 500)


@dataclass(frozen=True, slots=True)
class Design:
    """A way to count, as a partition sees it.

    hot_units: the write units that a change asks of the partition of its lane or item. usage(rate, shards, regions):
    what a change costs. lanes_by_region: whether each Region writes items of its own, or all write the same.
    """

    name: str
    hot_units: float
    usage: Callable[[float, int, int], Usage]
    lanes_by_region: bool = False

    def shards_needed(self, rate: float, regions: int = 1) -> int:
        """The fewest shards that throttle nothing at `rate`, all Regions together."""
        partitions = regions if self.lanes_by_region else 1
        return max(1, math.ceil(rate * self.hot_units / PARTITION_WRITE_UNITS / partitions))

    def dollars(self, rate: float, regions: int = 1) -> float:
        """Of a million changes, on so many shards."""
        return million_changes(self.usage(rate, self.shards_needed(rate, regions), regions), regions)


def single_item(name: str, hot_units: float, other_units: float = 0) -> Design:
    """A design whose changes all go to one item, or to one of N shards; `other_units` go to items that are not hot."""
    return Design(name, hot_units, lambda *_: Usage(hot_units + other_units, 0))


def _ours(rate: float, shards: int, regions: int) -> Usage:
    return Workload(rate * SECONDS, 0, counters=1, regions=regions, shards=shards).load().usage


OURS = Design("this library", lane.HOT_UNITS, _ours, lanes_by_region=True)
ADD = single_item("atomic ADD", 1)
TOKEN = single_item("transaction, client token", TRANSACTIONAL)
MARKER = single_item("transaction, marker", TRANSACTIONAL, other_units=TRANSACTIONAL)
DESIGNS = (OURS, ADD, TOKEN, MARKER)


def at(rate: float) -> lane.Load:
    """One lane of ours in a table of one Region."""
    return Workload(rate * SECONDS, 0, counters=1, regions=1).load()


def report() -> Iterator[str]:
    """The lines that are printed."""
    yield "Assumptions:"
    yield assumptions()
    yield ""
    yield from designs_table()
    yield ""
    yield from lane_table()


def designs_table() -> Iterator[str]:
    """How many shards throttle nothing, and what a million changes cost."""
    yield "shards that throttle nothing, in 1, 2 and 3 Regions"
    yield f"{'changes/s':>9}" + "".join(f"{design.name:>27}" for design in DESIGNS)
    for rate in RATES:
        cells = ("/".join(f"{each.shards_needed(rate, regions):,}" for regions in REGIONS) for each in DESIGNS)
        yield f"{rate:>9,}" + "".join(f"{cell:>27}" for cell in cells)
    yield f"dollars for a million changes, at {DOLLARS_RATE} a second"
    cells = ("/".join(f"{each.dollars(DOLLARS_RATE, regions) + 1e-9:.2f}" for regions in REGIONS) for each in DESIGNS)
    yield f"{'':>9}" + "".join(f"{cell:>27}" for cell in cells)


def lane_table() -> Iterator[str]:
    """One lane of ours by its rate."""
    yield "one lane of ours, in one Region; of a change:        of a read:"
    yield "changes/s  write units  of its marks  read units     deltas  read units  reads/s at most"
    for rate in LANE_RATES:
        load = at(rate)
        yield (
            f"{rate:>9,} {load.change_units / rate:>12.3f} {load.mark_units / rate:>13.3f} "
            f"{load.visit_units / rate:>11.3f} {load.tail:>10,.0f} {load.a_read:>11.1f} {reads_per_s(load):>16,.0f}"
        )


def reads_per_s(load: lane.Load) -> float:
    """Strongly consistent reads of a lane that the partition of its deltas serves; its compactor's are left out."""
    return PARTITION_READ_UNITS / load.tail_units


def assumptions() -> str:
    """What is assumed, as it stands at the top of this module."""
    return (__doc__ or "").partition("Assumptions:\n")[2].partition("\n\n")[0]


if __name__ == "__main__":
    does = "What one counter takes and costs at a steady rate, and what is assumed for it."
    argparse.ArgumentParser(prog="python -m lab.compare.forecast", description=does).parse_args()
    print("\n".join(report()))
