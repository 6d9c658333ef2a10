"""`cost`: what a workload costs a month, before it exists, and whether its deltas are better deleted or kept.

Rule 1: Nothing is worked out here: the arithmetic is month.py's.
Rule 2: A load that a lane cannot take is refused; one that is beyond the table is named before its price.
"""

import math
import re
from dataclasses import asdict
from typing import Annotated

import typer

from ledger.packing import PACK_CHANGES
from ledger.settings import SHARDS_MAX
from ledgerctl import show
from ledgerctl.bill import PRICES, SECONDS
from ledgerctl.call import Call
from ledgerctl.command import TABLE, command
from ledgerctl.failures import Wrong
from ledgerctl.month import TABLE_UNITS_MAX, Workload, changes_max

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


def _lane_max(load: Workload) -> int:
    return changes_max(clean=load.cleans, pack=load.pack)


def check(load: Workload) -> None:
    """Raises Wrong for a load that its lanes cannot take."""
    needed = math.ceil(load.lane_rate * load.shards / _lane_max(load))
    if needed > load.shards:
        says = f"Each lane gets {load.lane_rate:,.0f} changes a second and takes {_lane_max(load):,} for good, "
        says += "because each is put and deleted again." if load.cleans else "because each is put."
        remedy = f"With --shards {needed} a counter's lanes take it."
        if needed > SHARDS_MAX:
            remedy = f"That would need {needed:,} shards; a counter has {SHARDS_MAX:,} at most."
        raise Wrong("LanesTooHot", says, remedy)


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
    clean: Annotated[
        bool | None, typer.Option(help="Delete folded deltas, or keep them; else what is cheaper until then.")
    ] = None,
) -> None:
    """Work out a month's bill, and whether to delete deltas or keep them. Asks AWS nothing."""
    load = Workload(
        amount(changes), amount(reads), counters, in_regions, after_months, shards, pack, clean, amount(http)
    )
    check(load)
    units = load.changes / SECONDS * load.write_units
    too_much = f"The table takes {units:,.0f} write units a second; above {TABLE_UNITS_MAX:,} AWS must raise its quota."
    beyond = [too_much] if units > TABLE_UNITS_MAX else []
    bill = load.bill()
    total, largest = sum(bill.values()), max(bill, key=lambda line: bill[line])
    if call.json:
        dollars = {name: round(line, 2) for name, line in (bill | {"total": total}).items()}
        chosen = {
            "value": load.cleans,
            "why": why(load).replace("\n", " "),
            "break_even_months": round(load.break_even, 1),
        }
        fields = {"workload": asdict(load) | {"clean": load.cleans}, "a_lane_takes": _lane_max(load), "clean": chosen}
        fields |= {"beyond": beyond, "dollars_a_month": dollars, "largest": largest, "prices": asdict(PRICES)}
        call.document(fields)
        return
    counts = f"counters: {load.counters:,}, shards: {load.shards:,}, Regions: {load.regions}"
    call.say(f"{load.changes:,.0f} changes and {load.reads:,.0f} reads a month; {counts}")
    call.say(f"{load.pack} to a pack: a lane takes {_lane_max(load):,} changes a second for good")
    call.say(f"clean={str(load.cleans).lower()}{'' if clean is None else ', as you say'}: {why(load)}")
    for line in beyond:
        call.say(f"Beyond the table: {line}\nWhat follows is the price if it could.", style="bold red")
    rows = [(LINES[name].format(load), f"{line:,.2f}") for name, line in bill.items()]
    call.out.print(show.table(("", "dollars a month"), [*rows, ("all of it", f"{total:,.2f}")]))
    if load.changes:
        call.say(f"{total / load.changes * 1e6:,.2f} dollars for a million changes")
    call.say(f"the largest line: {LINES[largest].format(load)}")
    call.say(f"Prices of {PRICES.region} since {PRICES.since}, without free tiers and taxes; right to a tenth.", "dim")


def why(load: Workload) -> str:
    """What it costs to delete deltas, and to keep them."""
    kept = load.kept_month * (load.after_months + 1) / 2
    says = f"a million deltas\ndeleted are {load.deleted:,.3f} dollars, kept {load.kept_month:,.3f} a month:\n"
    return f"{says}in {load.after_months} months {kept:,.3f}, and as much as deleted after {load.break_even:,.0f}"
