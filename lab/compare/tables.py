"""What `make compare` found, as tables: in Markdown to choose by, and in plain text of at most 100 columns.

Rule 1: Nothing is measured or worked out here beyond a share or a sum; every other cell is a claim that
tests/lab/designs/test_claims.py holds.
Rule 2: A row is a design, in the order given, and nothing here knows one by its name.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from lab.compare.accuracy import NET, Accuracy
from lab.compare.changes import Counted
from lab.compare.cost import Spent
from lab.compare.scale import Read
from lab.compare.speed import Pace, Trips
from lab.designs import Design, Memory
from ledgerctl import bill

MINUTE_MS, DAY_MS = 60_000, 86_400_000
GROUPS = {
    "crashes, lost answers": ("at once", "late", "no reply", "crash"),
    "repeats within 10 minutes": ("twice", "9 min"),
    "later repeats": ("11 min", "1 day", "8 days"),
    "two Regions": ("Regions", "cut off", "failover"),
}
"""The scenarios by what a reader has to fear; together they are all."""


@dataclass(frozen=True, slots=True)
class Row:
    """What was found of one design. one: on one counter; pace: 32 writers on one counter."""

    design: Design
    accuracy: Accuracy
    one: Spent
    reads: Sequence[Read]
    pace: Pace


LIMITS = {"everywhere": "yes, in all Regions", "hard": "yes, in one Region", "soft": "nearly", "none": "no"}


def choice(rows: Iterable[Row]) -> Iterator[str]:
    """What goes wrong, what is held, what it takes."""
    found = list(rows)
    groups = (f"{group}: lost / doubled of {events(found, group):,}" for group in GROUPS)
    heads = (
        *("", "the same change again counts once", *groups),
        *("a limit holds", "write units a change", "read units, at rest, after 10^6 changes"),
        "changes/s of 32 writers, ADD = 1",
    )
    return markdown(heads, (_choice(row) for row in found))


def abilities(designs: Iterable[Design]) -> Iterator[str]:
    """What each can do at all."""
    heads = (
        *("", "the same change again counts once", "another change under a used key is refused", "a limit holds"),
        *("several Regions write", "every change can be listed", "one write resets it", "changes"),
    )
    rows = []
    for each in designs:
        claims = each.claims
        yes = ("yes" if claimed else "no" for claimed in (claims.regions, claims.history, claims.reset))
        again = (memory(claims.memory), "yes" if claims.mismatch else "no")
        rows.append((each.name, *again, LIMITS[claims.limit], *yes, "of 1" if claims.units else "any"))
    return markdown(heads, rows)


def events(rows: Iterable[Row], group: str) -> int:
    """How many events each design got in these scenarios; all get the same."""
    return max((_sum(row, GROUPS[group]).events for row in rows), default=0)


def _choice(row: Row) -> tuple[str, ...]:
    wrong = (_sum(row, names) for names in GROUPS.values())
    at_million = next(read for read in row.reads if read.changes == 1_000_000)
    return (
        row.design.name,
        memory(row.design.claims.memory),
        *(f"{some.lost:,} / {some.doubled:,}{NET * row.accuracy.net}" for some in wrong),
        LIMITS[row.design.claims.limit],
        f"{row.one.usage.write_units:.2f}{', grows' if row.one.grows else ''}",
        f"{'' if at_million.measured else '~'}{at_million.read_units:,.0f}" if at_million.possible else "full",
        f"{row.pace.rate:.2f}",
    )


def memory(memory: Memory) -> str:
    """For how long a change that is sent again counts once."""
    if memory.ms == 0 or memory.writes == 0:
        return "no"
    until = [] if memory.merges else ["until merged"]
    if not math.isinf(memory.ms):
        days = memory.ms / DAY_MS
        until.append(f"{days:.0f} days" if days >= 1 else f"{memory.ms / MINUTE_MS:.0f} minutes")
    if not math.isinf(memory.writes):
        until.append(f"{memory.writes:.0f} changes")
    return ", ".join(until) or "for ever"


def _sum(row: Row, names: Sequence[str]) -> Counted:
    return sum((row.accuracy.faults[name] for name in names), Counted())


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _line(heads)
    yield _line(("---", *("---:" for _ in heads[1:])))
    yield from map(_line, rows)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


A_YEAR = 12_000_000  # changes of a year: a million a month
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
