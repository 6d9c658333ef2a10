"""`cost`: what a workload costs a month, before it exists.

Rule 1: Nothing is worked out here: the arithmetic is month.py's.
Rule 2: A load that is beyond a lane or the table is named before its price.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer

from ledger.lane.add import PACK_CHANGES
from ledger.settings import SHARDS_MAX
from ledgerctl.call import Call
from ledgerctl.command import TABLE, command
from ledgerctl.failures import Wrong
from ledgerctl.month import PRICES, SECONDS, TABLE_UNITS_MAX, Workload, changes_max

AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kMG]?)(/s)?")
SCALE = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
LINES = {
    "changes": "changes: {0.write_units:.2f} write units in each Region",
    "reads": "reads: {0.read_units:,.1f} read units each, with the tail",
    "finding": "finding work: ring, its queue, looks, the sweep",
    "compactor": "visits of the compactor: their reads",
    "storage": "storage after {0.after_months} months; traffic",
    "queue": "the changes' queue, its function and the API's",
    "http": "HTTP API",
    "logs": "logs",
    "alarms": "alarms, metrics, dashboards",
}


def amount(text: str) -> float:
    """A month's number: 250000, 10M, or a rate such as 40/s."""
    match = AMOUNT.fullmatch(text.replace(",", ""))
    if match is None:
        raise Wrong("BadAmount", f"{text!a} is no amount.", "Write a number a month, such as 250000 or 10M, or 40/s.")
    number, scale, rate = match.groups()
    return float(number) * SCALE[scale] * (SECONDS if rate else 1)


def beyond(load: Workload) -> Iterator[str]:
    """What a lane or the table cannot take of this load; its price is of what would be, if it could."""
    most, units = changes_max(clean=load.clean, pack=load.pack), load.changes / SECONDS * load.write_units
    if load.lane_rate > most:
        needed = math.ceil(load.lane_rate * load.shards / most)
        remedy = f"a counter has {SHARDS_MAX:,} shards at most"
        if needed <= SHARDS_MAX:
            remedy = f"--shards {needed:,} spreads them"
        yield f"Each lane gets {load.lane_rate:,.0f} changes a second and takes {most:,} for good: {remedy}."
    if units > TABLE_UNITS_MAX:
        yield f"The table takes {units:,.0f} write units a second; above {TABLE_UNITS_MAX:,} AWS must raise its quota."


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
    load = Workload(*per_month, counters, in_regions, after_months, shards, pack, clean, amount(http))
    too_much, lane_max = list(beyond(load)), changes_max(clean=clean, pack=pack)
    bill = load.bill()
    total, largest = sum(bill.values()), max(bill, key=lambda line: bill[line])
    dollars = {name: round(line, 2) for name, line in (bill | {"total": total}).items()}
    fields = {"workload": asdict(load), "a_lane_takes": lane_max, "beyond": too_much, "dollars_a_month": dollars}
    call.document(fields | {"largest": largest, "prices": asdict(PRICES)})
    counts = f"counters: {load.counters:,}, shards: {load.shards:,}, Regions: {load.regions}"
    call.say(f"{load.changes:,.0f} changes and {load.reads:,.0f} reads a month; {counts}")
    call.say(f"{pack} to a pack: a lane takes {lane_max:,} changes a second for good")
    for line in too_much:
        call.say(f"{line} What follows is the price if it could.", style="bold red")
    rows = [(LINES[name].format(load), f"{line:,.2f}") for name, line in bill.items()]
    call.table_of(("", "dollars a month"), [*rows, ("all of it", f"{total:,.2f}")])
    if load.changes:
        call.say(f"{total / load.changes * 1e6:,.2f} dollars for a million changes")
    call.say(f"the largest line: {LINES[largest].format(load)}")
    call.say(f"Prices of {PRICES.region} since {PRICES.since}, without free tiers and taxes; right to a tenth.", "dim")
