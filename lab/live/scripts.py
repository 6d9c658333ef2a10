"""Who acts on the live page: writers, readers and compactors of this library and of two obvious
designs, and buyers.

Rule 1: Ours are the shipped programs; all three are designs of `lab.designs`.
Rule 2: A change is sent to all three alike, and again until it is acknowledged, as a queue does.
Rule 3: A script stops and goes on at any yield.
"""

from collections import Counter
from collections.abc import Callable

from compactor.report import Tally
from compactor.visit import visit
from lab.designs import Design
from lab.designs.atomic import Atomic
from lab.designs.item_collection import NaiveMerge, Ours
from lab.designs.with_limit import Limited
from lab.live.customers import COUNTER, Change
from ledger.core.errors import DamagedItem, LaneDamaged, LedgerError
from ledger.core.requests import Instant, Now
from ledger.core.settings import Settings
from reader.series import bars
from simulator.process import Script, Sleep

REGIONS = ("eu-west-1", "us-east-1")
SETTINGS = Settings(
    table="counters",
    region=REGIONS[0],
    regions=REGIONS,
    allowed_lateness_ms=1_500,
    keep_ms=3_000,
    read_time_max_ms=2_000,
    fold_min=4,
    fold_max=40,
)
"""The protocol's times, shortened so that a change is folded and cleaned while one watches."""

RETRY, BUY, READ, VISIT, MERGE, CHART = (Sleep(steps) for steps in (20, 100, 15, 100, 300, 50))
"""Rests between two tries, tries to buy, reads, visits, merges and series."""

BAR_MS, BARS = 4_000, 30
"""The steps of the chart: what would be the hours of a day takes two minutes here."""

DESIGNS: dict[str, Design] = {
    "ours": Ours(settings=SETTINGS),
    "atomic": Atomic(name="atomic ADD"),
    "merge": NaiveMerge(name="naive merge", settings=SETTINGS),
}
COUNTERS = {"ours": COUNTER, "atomic": COUNTER, "merge": "naive-merge"}
"""The same counter.

The naive merge has a list of changes of its own, and every Region works on it.
"""

SALE, SEATS = "seats", 100
ADVANCE_SEATS = 60  # on sale before the first cut; then both Regions sell the others
SELLERS: dict[str, Design] = {
    "ours": Limited(name="this library", settings=SETTINGS, ceiling=SEATS),
    "atomic": Atomic(name="conditional ADD", ceiling=SEATS),
}
"""The sale: whoever makes a change also asks for one seat."""


def sends(design: str, change: Change) -> Script:
    """One delivery of a change."""
    own, counter = DESIGNS[design].of(change.home, REGIONS), COUNTERS[design]
    while True:
        try:
            yield from own.add(counter, change.amount, str(change.number), change.made_ms)
            return
        except LedgerError:
            yield RETRY


def buys(design: str, change: Change, answered: Callable[[int, bool], None]) -> Script:
    """A customer asks for a seat until the answer is yes or no.

    `answered` gets the customer's number and whether.
    """
    own = SELLERS[design].of(change.home, REGIONS)
    while True:
        try:
            outcome = yield from own.add(SALE, 1, str(change.number), change.made_ms)
            answered(change.number, outcome != "refused")
            return
        except LedgerError:
            yield BUY


def reads(design: str, see: Callable[[int, int | None], None]) -> Script:
    """Strong reads for ever. `see` gets the value, and how many changes it sums up; None where the
    read does not know."""
    own, counter = DESIGNS[design], COUNTERS[design]
    while True:
        yield READ
        try:
            if isinstance(own, Ours):
                see(*(yield from own.sum_of(counter)))
            else:
                see((yield from own.value(counter)), None)
        except LedgerError as error:
            check_passes(error)


def charts(see: Callable[[list[int]], None]) -> Script:
    """Reads for ever by how much our counter changed in each of the last steps."""
    while True:
        yield CHART
        now: Instant = yield Now()
        end_ms = now.wall_ms // BAR_MS * BAR_MS + BAR_MS
        borders = range(end_ms - BARS * BAR_MS, end_ms + 1, BAR_MS)
        try:
            _, found = yield from bars(COUNTER, borders, SETTINGS, consistent=True)
            see(found.totals[1:-1])
        except LedgerError as error:
            check_passes(error)


def compacts(settings: Settings, done: Counter[str]) -> Script:
    """Visits the lanes of its own Region for ever.

    `done` counts what a visit did, even if it failed.
    """
    while True:
        yield VISIT
        for lane in settings.lanes_of(COUNTER, settings.region):
            tally = Tally()
            try:
                yield from visit(lane, tally, settings)
            except LedgerError as error:
                check_passes(error)
            finally:
                done.update(folded=tally.folded, settled=tally.settled, cleaned=tally.cleaned)


def check_passes(error: LedgerError) -> None:
    """Raises an error that nothing in the scene can cause."""
    if isinstance(error, DamagedItem | LaneDamaged):
        raise error


def merges() -> Script:
    """The naive merge's job, for ever."""
    while True:
        yield MERGE
        try:
            yield from DESIGNS["merge"].housekeep(COUNTERS["merge"], SETTINGS.region)
        except LedgerError:
            continue
