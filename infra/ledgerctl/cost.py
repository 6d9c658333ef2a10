"""`cost`: what a workload costs a month, in DynamoDB, before it exists.

Rules: prices are those of `bill.py` and units those of the README; what is assumed stands here, once, with a name; the
three workloads of docs/costs.md come out as that page says, and a test holds the two together. Functions, queues,
alarms and the traffic between Regions are left out: docs/costs.md has them.
"""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from infra.ledgerctl import show
from infra.ledgerctl.bill import PRICES, Usage, million_changes, million_reads, storage_month
from infra.ledgerctl.call import Call
from infra.ledgerctl.command import command
from infra.ledgerctl.failures import Wrong
from ledger.settings import Settings
from ledger.values import ENTRY

MINUTES, SECONDS = 730 * 60, 730 * 3600  # of a month
TOUCH_S = 5
"""A lane's mark is touched at most that often, in seconds."""

MARK_UNITS_OF_VISIT = 2
READ_UNITS_OF_LANE = 2
"""A read: one for the checkpoint, one for a short tail."""

READ_UNITS_OF_VISIT = 7
HELD_BYTES, HELD_MINUTES = 104, 16.5
"""Of a delta with its entry, which a visit reads again while the delta waits for clean: half a round of `keep_ms` and a
visit on average until it is noted, and a whole one after that."""

FIND_UNITS = 4 * 730 * 20 * 128
"""A month of `find` in a Region: four times an hour, up to 20 MB, eventually consistent."""

SEGMENT_BYTES, DELTA_BYTES = 140, 85
AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kMG]?)(/s)?")
SCALE = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}

DEFAULT = Settings(table="any", region="us-east-1")


@dataclass(frozen=True, slots=True)
class Workload:
    """changes and reads: a month, all Regions together; reads are those that reach the table."""

    changes: float
    reads: float
    counters: int
    regions: int
    after_months: int = 12

    @property
    def lanes(self) -> int:
        return self.counters * self.regions

    @property
    def a_minute(self) -> float:
        """Changes of a lane."""
        return self.changes / self.lanes / MINUTES

    @property
    def is_folded(self) -> bool:
        return self.changes / self.lanes * self.after_months >= DEFAULT.fold_min

    @property
    def visits(self) -> float:
        """One a change, at most one a minute for a lane."""
        return self.changes * min(1.0, 1 / self.a_minute) if self.changes else 0.0


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


def life_units(load: Workload) -> float:
    """Write units of a change in one Region: its put, its delete, its share of commits and clean notes."""
    if not load.is_folded:
        return 1.0
    batch = min(max(DEFAULT.fold_min, load.a_minute), DEFAULT.fold_max)
    segment: int = math.ceil((SEGMENT_BYTES + ENTRY.size * batch) / 1024)
    return 2.0 + (2 + 2 * segment + 1) / batch


def mark_units(load: Workload) -> float:
    """Write units of a change's share of touches and visits."""
    if not load.changes:
        return 0.0
    return 1 / (1 + load.a_minute / 60 * TOUCH_S) + MARK_UNITS_OF_VISIT * load.visits / load.changes


def bill_of(load: Workload) -> Bill:
    """The bill of a workload at `PRICES`."""
    millions, read = load.changes / 1e6, load.regions * READ_UNITS_OF_LANE
    visit = READ_UNITS_OF_VISIT + load.a_minute * HELD_MINUTES * HELD_BYTES / 4096
    left = (ENTRY.size, 0) if load.is_folded else (DELTA_BYTES, 1)
    compactor_units = load.visits * visit + FIND_UNITS * load.regions
    return Bill(
        changes=millions * million_changes(Usage(life_units(load), 0), load.regions),
        marks=millions * million_changes(Usage(mark_units(load), 0), load.regions),
        reads=load.reads / 1e6 * million_reads(Usage(0, read)),
        compactor=compactor_units / 1e6 * million_reads(Usage(0, 1)),
        storage=storage_month(
            Usage(0, 0, item_bytes=left[0], items=left[1]), load.changes * load.after_months, load.regions
        ),
    )


def amount(text: str) -> float:
    """A month's number: 250000, 10M, or a rate such as 40/s."""
    match = AMOUNT.fullmatch(text.replace(",", ""))
    if match is None:
        raise Wrong("BadAmount", f"{text!a} is no amount.", "Write a number a month, such as 250000 or 10M, or 40/s.")
    number, scale, rate = match.groups()
    return float(number) * SCALE[scale] * (SECONDS if rate else 1)


@command("cost")
def cost(
    call: Call,
    changes: Annotated[str, typer.Option(help="A month, such as 10M, or a rate, such as 40/s.")],
    reads: Annotated[str, typer.Option(help="Reads that reach the table, in the same way.")] = "0",
    counters: Annotated[int, typer.Option(min=1, help="How many counters take them.")] = 1,
    in_regions: Annotated[int, typer.Option(min=1, max=20, help="In how many Regions the table is.")] = 1,
    after_months: Annotated[int, typer.Option(min=1, help="How many months of changes are stored by then.")] = 12,
) -> None:
    """Work out a month's DynamoDB bill. Asks AWS nothing."""
    load = Workload(amount(changes), amount(reads), counters, in_regions, after_months)
    bill = bill_of(load)
    if call.json:
        dollars = {name: round(value, 2) for name, value in (asdict(bill) | {"total": bill.total}).items()}
        call.document({"workload": asdict(load), "dollars_a_month": dollars, "prices": asdict(PRICES)})
        return
    each = " in each Region" if load.regions > 1 else ""
    folds = "folded and cleaned" if load.is_folded else f"too few to fold ({DEFAULT.fold_min} of a lane)"
    rows = [
        (f"changes: {life_units(load):.2f} write units{each}; {folds}", f"{bill.changes:,.2f}"),
        (f"marks of the service: {mark_units(load):.2f} write units a change{each}", f"{bill.marks:,.2f}"),
        (f"reads: {load.regions * READ_UNITS_OF_LANE} read units each", f"{bill.reads:,.2f}"),
        ("compactor, plan and find: their reads", f"{bill.compactor:,.2f}"),
        (f"storage after {load.after_months} months; it grows, for segments are for ever", f"{bill.storage:,.2f}"),
        ("all of DynamoDB", f"{bill.total:,.2f}"),
    ]
    said = f"{load.changes:,.0f} changes and {load.reads:,.0f} reads a month"
    call.say(f"{said}; counters: {load.counters:,}, Regions: {load.regions}")
    call.out.print(show.table(("", "dollars a month"), rows))
    if load.changes:
        call.say(f"{bill.total / load.changes * 1e6:,.2f} dollars for a million changes")
    call.say(
        f"Prices of {PRICES.region} since {PRICES.since}, without free tiers and taxes,\n"
        "and without the service's functions, queues and alarms (docs/costs.md).",
        style="dim",
    )
