"""What cost.py, speed.py and scale.py found, as lines of plain text of at most 100 columns.

Rule 1: Nothing is measured or worked out here beyond a share or a sum.
Rule 2: A row is a design, in the order given.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from lab.compare.cost import Spent
from lab.compare.scale import Read
from lab.compare.speed import Pace, Trips
from ledgerctl import bill

A_YEAR = 12_000_000
"""Changes of a year: a million a month."""

REGIONS = (1, 2, 3)


def columns(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The first column to the left, the others to the right, each as wide as it must be; heads may have lines."""
    parts = [head.split("\n") for head in heads]
    deep = max(map(len, parts))
    cells = [*zip(*([""] * (deep - len(part)) + part for part in parts), strict=True), *rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *others in cells:
        right = (f" {cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
        yield f"{first:<{widths[0]}}{''.join(right)}".rstrip()


def units(found: Sequence[Spent]) -> Iterator[str]:
    """A change's requests and units, the housekeeping's for it, and a read's."""
    heads = ("change:\nrequests", "\nwrite", "\nread", "housekeeping:\nwrite", "\nread", "a read:\nrequests", "\nread")
    rows = []
    for each in found:
        of_change = (each.change.requests, each.change.write_units, each.change.read_units)
        of_both = (*of_change, each.housekeeping.write_units, each.housekeeping.read_units)
        of_reads = (each.read.requests / each.reads, each.read.read_units / each.reads)
        cells = (*(f"{n / each.changes:.2f}" for n in of_both), *(f"{n:.1f}" for n in of_reads))
        rows.append((each.design.name, *cells))
    return columns(("", *heads), rows)


def dollars(shop: Sequence[Spent], one: Sequence[Spent]) -> Iterator[str]:
    """A million changes in 1, 2 and 3 Regions; a million reads of the one counter, and a year's storage, a month."""
    heads = ("", "shop:\n1", "\n2", "\n3", "one:\n1", "\n2", "\n3", "\nreads", "\nstorage")
    rows = []
    for on_shop, on_one in zip(shop, one, strict=True):
        changes = [bill.million_changes(each.usage, regions) for each in (on_shop, on_one) for regions in REGIONS]
        others = (bill.million_reads(on_one.usage), bill.storage_month(on_one.usage, A_YEAR, 1))
        cells = [f"{amount + 1e-9:.2f}" for amount in (*changes, *others)]
        if on_one.grows:
            cells[len(REGIONS) :] = ["full"] * len(cells[len(REGIONS) :])
        rows.append((on_shop.design.name, *cells))
    return columns(heads, rows)


def rates(found: Sequence[Pace]) -> Iterator[str]:
    """Changes a second over plain ADD's, by counters and threads."""
    settings = list(dict.fromkeys((pace.counters, pace.threads) for pace in found))
    of = {(pace.design, pace.counters, pace.threads): f"{pace.rate:.2f}" for pace in found}
    fewest = min(threads for _, threads in settings)
    heads = (f"{counters:,}:\n{each}" if each == fewest else f"\n{each}" for counters, each in settings)
    names = dict.fromkeys(pace.design for pace in found)
    return columns(("", *heads), [(name, *(of[name, *setting] for setting in settings)) for name in names])


def contention(alone: Sequence[Trips], one: Sequence[Pace], many: Sequence[Pace]) -> Iterator[str]:
    """Round trips; latencies of one writer and of many over plain ADD's; and what the many met, on one counter."""
    heads = ("trips:\nadd", "\nread", "1:\np50", "\np99", "32:\np50", "\np99", "\nretries", "con-\nflicts", "given\nup")
    rows = []
    for trip, first, last in zip(alone, one, many, strict=True):
        ratios = (first.p50, first.p99, last.p50, last.p99)
        cells = (
            *(f"{n:.0f}" for n in (trip.change, trip.read)),
            *(f"{n:.1f}" if n < 100 else f"{n:.0f}" for n in ratios),
            *(f"{n:,.0f}" for n in (last.retries, last.conflicts, last.given_up)),
        )
        rows.append((trip.design, *cells))
    return columns(("", *heads), rows)


def scale(found: Sequence[Sequence[Read]]) -> Iterator[tuple[str, Iterator[str]]]:
    """(what it is about, its lines): read units and round trips of a read, by changes made before."""
    aspects: dict[str, Callable[[Read], float]] = {
        "read units of a read": lambda read: read.read_units,
        "round trips of a read": lambda read: read.round_trips,
    }
    heads = ("", *(f"{read.changes:,}" for read in found[0]))
    for aspect, number in aspects.items():
        rows = [(reads[0].design, *(_cell(read, number(read)) for read in reads)) for reads in found]
        yield f"{aspect}, after so many changes", columns(heads, rows)


def _cell(read: Read, number: float) -> str:
    if not read.possible:
        return "full"
    return f"{'' if read.measured else '~'}{number:,.0f}" if number < 1e6 else f"~{number / 1e6:,.0f}M"
