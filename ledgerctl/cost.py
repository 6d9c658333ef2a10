"""`cost`: what a workload costs a month, before it exists, and whether its deltas are better deleted or kept.

Rule 1: Nothing is worked out here: the bill and the choice are workload.py's.
Rule 2: A load that a lane cannot take is refused, one that is beyond the table is told before its price.
"""

import re
from dataclasses import asdict
from typing import Annotated

import typer

from ledger.lane.add import PACK_CHANGES
from ledger.settings import SHARDS_MAX
from ledgerctl import show
from ledgerctl.bill import PRICES
from ledgerctl.call import Call
from ledgerctl.command import TABLE, command
from ledgerctl.failures import Wrong
from ledgerctl.workload import SECONDS, Workload, beyond, bill_of, read_units

AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kMG]?)(/s)?")
SCALE = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


def amount(text: str) -> float:
    """A month's number: 250000, 10M, or a rate such as 40/s."""
    match = AMOUNT.fullmatch(text.replace(",", ""))
    if match is None:
        raise Wrong("BadAmount", f"{text!a} is no amount.", "Write a number a month, such as 250000 or 10M, or 40/s.")
    number, scale, rate = match.groups()
    return float(number) * SCALE[scale] * (SECONDS if rate else 1)


def check(load: Workload) -> None:
    """Raises Wrong for a load that its lanes cannot take."""
    if load.shards_needed > load.shards:
        needed = load.shards_needed
        raise Wrong(
            "LanesTooHot",
            f"Each lane gets {load.lane_rate:,.0f} changes a second and takes {load.lane_max:,} for good, "
            + ("because each is put and deleted again." if load.settings.clean else "because each is put."),
            f"With --shards {needed} a counter's lanes take it."
            if needed <= SHARDS_MAX
            else f"That would need {needed:,} shards; a counter has {SHARDS_MAX:,} at most.",
        )


@command("cost", TABLE)
def cost(
    call: Call,
    changes: Annotated[str, typer.Option(help="A month, such as 10M, or a rate, such as 40/s.")],
    reads: Annotated[str, typer.Option(help="Strong reads that reach the table, in the same way.")] = "0",
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
    load = Workload(amount(changes), amount(reads), counters, in_regions, after_months, shards, pack, clean)
    check(load)
    bill, too_much = bill_of(load), list(beyond(load))
    choice, cleans = load.choice, load.settings.clean
    if call.json:
        dollars = {name: round(value, 2) for name, value in (asdict(bill) | {"total": bill.total}).items()}
        chosen = {
            "value": cleans,
            "why": choice.why.replace("\n", " "),
            "break_even_months": round(choice.break_even, 1),
        }
        call.document(
            {
                "workload": asdict(load) | {"clean": cleans},
                "a_lane_takes": load.lane_max,
                "clean": chosen,
                "beyond": too_much,
                "dollars_a_month": dollars,
                "prices": asdict(PRICES),
            }
        )
        return
    each = " in each Region" if load.regions > 1 else ""
    folds = f"folded and {'cleaned' if cleans else 'kept'}"
    if not load.is_folded:
        folds = f"too few to fold ({load.settings.fold_min} of a lane)"
    of_lane = load.load() if load.changes else None
    life = of_lane.write_units / of_lane.rate if of_lane else 0.0
    looks = of_lane.messages / of_lane.rate if of_lane else 0.0
    rows = [
        (f"changes: {life:.2f} write units{each}; {folds}", f"{bill.changes:,.2f}"),
        (f"reads: {read_units(load):,.1f} read units each, with the tail", f"{bill.reads:,.2f}"),
        (f"finding work: {looks:.3f} messages a change, ring, sweep, looks", f"{bill.finding:,.2f}"),
        ("visits of the compactor: their reads", f"{bill.compactor:,.2f}"),
        (f"storage after {load.after_months} months; it grows, for segments are for ever", f"{bill.storage:,.2f}"),
        ("all of it", f"{bill.total:,.2f}"),
    ]
    said = f"{load.changes:,.0f} changes and {load.reads:,.0f} reads a month"
    call.say(f"{said}; counters: {load.counters:,}, shards: {load.shards:,}, Regions: {load.regions}")
    call.say(f"{load.pack} to a pack: a lane takes {load.lane_max:,} changes a second for good")
    call.say(f"clean={str(cleans).lower()}{'' if clean is None else ', as you say'}: {choice.why}")
    for line in too_much:
        call.say(f"Beyond the table: {line}", style="bold red")
    if too_much:
        call.say("What follows is the price if it could.", style="bold red")
    call.out.print(show.table(("", "dollars a month"), rows))
    if load.changes:
        call.say(f"{bill.total / load.changes * 1e6:,.2f} dollars for a million changes")
    call.say(
        f"Prices of {PRICES.region} since {PRICES.since}, without free tiers and taxes,\n"
        "and without how changes and reads come, alarms and logs (docs/costs.md).",
        style="dim",
    )
