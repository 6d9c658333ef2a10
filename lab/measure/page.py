"""docs/comparison.md: what `make compare` found, for someone who has to choose.

Rule 1: Every figure is from the run that is given. A sentence says nothing that a table does not
show.
Rule 2: A row is a design, in the order given, and nothing here knows one by its name. The sentences
are in page.md, and what docs/comparison.txt has, in tables.txt.
"""

import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.designs import Claims, Design, Memory
from lab.designs.design import FOR_EVER
from lab.measure.changes import EVENTS, Counted
from lab.measure.cost import COUNTERS, ONE, SHOP, THREADS, Pace, Spent
from lab.measure.one_counter import DAY_MS, MINUTE_MS, OTHERS, SCENARIOS
from lab.measure.rivals import Rival

PAGE, TABLES = (Path(__file__).with_name(name) for name in ("page.md", "tables.txt"))
GROUPS = {
    group: tuple(scenario.name for scenario in SCENARIOS if len(scenario.regions) == number)
    for number, group in enumerate(("one Region", "two Regions"), 1)
}
"""The scenarios by where they happen."""

LIMITS = {
    "everywhere": "in all Regions",
    "hard": "in one Region",
    "soft": "nearly",
    "none": "no",
}
RIVALS = (
    "",
    "requests",
    "write units",
    "CPU, bare put = 1",
    "sent again",
    "answer lost",
    "process died",
)
NET = " *"
LINE = 118
FIRST = " " * 48  # what stands before the names in tables.txt


@dataclass(frozen=True, slots=True)
class Row:
    """What was found of one design.

    faults: by scenario; shop, one: on many counters and on one; paces: by COUNTERS.
    """

    design: Design
    faults: Mapping[str, Counted]
    shop: Spent
    one: Spent
    paces: Sequence[Pace]

    def mistakes(self) -> Iterator[str]:
        """What is wrong with a design that counts every change once, for ever, in all Regions; of
        others, whether they did nothing."""
        name, claims = self.design.name, self.design.claims
        if not all(pace.made for pace in self.paces):
            yield f"{name}: no change by {THREADS} threads"
        for fault, counted in (
            self.faults.items() if claims.memory == FOR_EVER and claims.regions else ()
        ):
            missed = counted.missed if fault != "late" else 0  # those are strays
            if counted.lost or counted.doubled or counted.gave_up or not counted.events:
                yield (
                    f"{name}, {fault}: of {counted.events} events {counted.lost} lost, "
                    f"{counted.doubled} doubled, {counted.gave_up} given up"
                )
            if counted.false or missed or not counted.reads:
                yield (
                    f"{name}, {fault}: of {counted.reads} reads {counted.false} false, "
                    f"{missed} missed"
                )


def filled(
    text: Path, rows: Sequence[Row], rivals: Sequence[Rival], seeds: int, **facts: str
) -> str:
    """PAGE or TABLES. seeds: how many the accuracy had. facts: the date, the engine, and where the
    events of the bill came from."""
    faults = list(_faults(rows))
    choice = (
        "",
        "the same change again counts once",
        *(fault.head for fault in faults),
        "a limit holds",
        "write units a change",
        f"read units after {ONE} changes",
        f"changes a second of {THREADS} writers, ADD = 1",
    )
    return text.read_text().format(
        **facts,
        choice=_table(choice, (_choice(row, faults) for row in rows)),
        rivals=_table(RIVALS, (rival.cells() for rival in rivals)),
        refusing=_who(rows, lambda claims: claims.mismatch),
        listing=_who(rows, lambda claims: claims.history),
        seeds=seeds,
        each=EVENTS,
        column=EVENTS * seeds,
        others=OTHERS,
        one=ONE,
        accuracy=_columns(_accuracy(rows)),
        shop=SHOP,
        counters=COUNTERS[-1],
        units=_columns([UNITS, *map(_units, rows)]),
    )


def _table(first: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (first, ("---", *("---:" for _ in first[1:])), *rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


@dataclass(frozen=True, slots=True)
class Fault:
    """A column of lost or of doubled events. scenarios: those that it sums."""

    head: str
    kind: str
    scenarios: Sequence[str]


def _faults(rows: Sequence[Row]) -> Iterator[Fault]:
    """The columns in which some design has more than 0."""
    for group, names in GROUPS.items():
        events = max(_sum(row, names).events for row in rows)  # each design gets the same
        of = f" of {events:,}"
        for kind in ("lost", "doubled"):
            if any(getattr(_sum(row, names), kind) for row in rows):
                yield Fault(f"{group}: {kind}{of}", kind, names)
                of = ""


def _sum(row: Row, names: Iterable[str]) -> Counted:
    return sum((row.faults[name] for name in names), Counted())


def _choice(row: Row, faults: Iterable[Fault]) -> tuple[str, ...]:
    claims, net = row.design.claims, NET * row.design.claims.units
    wrong = (getattr(_sum(row, fault.scenarios), fault.kind) for fault in faults)
    first, last = (round(read.read_units) for read in row.one.reads)
    return (
        row.design.name,
        _memory(claims.memory) + (", unless a process dies" if not claims.survives_death else ""),
        *(f"{number:,}{net}" for number in wrong),
        LIMITS[claims.limit],
        f"{row.one.write_units:.2f}{', grows' if row.one.grows else ''}",
        f"{last}{', grows' if last > first else ''}",
        f"{row.paces[0].rate:.2f}",
    )


def _who(rows: Iterable[Row], can: Callable[[Claims], bool]) -> str:
    names = "; ".join(row.design.name for row in rows if can(row.design.claims))
    return textwrap.fill(names, LINE, initial_indent=FIRST, subsequent_indent="  ").removeprefix(
        FIRST
    )


UNITS = ["", "requests", "writes", "care", "reads", "left", "many", "pace"]


def _units(row: Row) -> list[str]:
    one, spent = row.one, row.one.change + row.one.housekeeping
    numbers = (
        one.change.requests,
        one.change.write_units,
        one.housekeeping.write_units,
        spent.read_units,
    )
    left = f"{max(0, one.left_bytes) / one.changes:.0f}"
    cells = [f"{number / one.changes:.2f}" for number in numbers]
    return [
        row.design.name,
        *cells,
        left,
        f"{row.shop.write_units:.2f}",
        f"{row.paces[-1].rate:.2f}",
    ]


def _accuracy(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Events lost and doubled in each scenario that lost or doubled some; then reads that were
    false, and reads that missed an event.
    """
    names = [name for name in rows[0].faults if any(_wrong(row, name) != "0/0" for row in rows)]
    yield ["", *names, "reads"]
    for row in rows:
        reads = _sum(row, row.faults)
        yield [
            row.design.name,
            *(_wrong(row, name) for name in names),
            f"{reads.false}/{reads.missed}",
        ]


def _wrong(row: Row, name: str) -> str:
    counted = row.faults[name]
    return f"{counted.lost}/{counted.doubled}"


def _columns(rows: Iterable[Sequence[str]]) -> str:
    """The first column to the left, the others to the right, each as wide as it must be."""
    lines = list(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ([name.ljust(widths[0]), *map(str.rjust, cells, widths[1:])] for name, *cells in lines)
    return "\n".join(" ".join(cells).rstrip() for cells in padded)


def _memory(memory: Memory) -> str:
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
