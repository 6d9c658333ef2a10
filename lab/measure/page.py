"""docs/comparison.md: what `make compare` found, for someone who has to choose.

Rule 1: Every figure is from the run that is given. A sentence says nothing that the table or a design's file does not.
Rule 2: A row is a design, in the order given, and nothing here knows one by its name. The sentences are in page.md.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.designs import Design, Memory
from lab.designs.design import FOR_EVER
from lab.measure.changes import EVENTS, Counted
from lab.measure.cost import ONE, Spent
from lab.measure.one_counter import DAY_MS, MINUTE_MS, OTHERS

PAGE = Path(__file__).with_name("page.md")
GROUPS = {
    "crashes, lost answers": ("at once", "no reply", "crash"),
    "repeats within 10 minutes": ("twice", "9 min"),
    "later repeats": ("11 min", "1 day", "8 days"),
    "two Regions": ("Regions", "cut off", "failover"),
}
"""The scenarios by what a reader has to fear; together they are all."""

LIMITS = {"everywhere": "yes, in all Regions", "hard": "yes, in one Region", "soft": "nearly", "none": "no"}
NET = " *"


@dataclass(frozen=True, slots=True)
class Row:
    """What was found of one design. faults: by scenario; spent: on the changes of one counter."""

    design: Design
    faults: Mapping[str, Counted]
    spent: Spent

    def mistakes(self) -> Iterator[str]:
        """What is wrong with a design that counts every change once, for ever, in all Regions."""
        name, claims = self.design.name, self.design.claims
        for fault, counted in self.faults.items() if claims.memory == FOR_EVER and claims.regions else ():
            if counted.lost or counted.doubled or counted.gave_up or not counted.events:
                yield (
                    f"{name}, {fault}: of {counted.events} events {counted.lost} lost, {counted.doubled} doubled, "
                    f"{counted.gave_up} given up"
                )
            if counted.false or counted.missed or not counted.reads:
                yield f"{name}, {fault}: of {counted.reads} reads {counted.false} false, {counted.missed} missed"


def filled(rows: Sequence[Row], seeds: int, date: str) -> str:
    """The page. seeds: how many the accuracy had."""
    groups = (f"{group}: lost/doubled of {_sum(rows[0], names).events:,}" for group, names in GROUPS.items())
    head = (
        *("", "the same change again counts once", *groups, "a limit holds", "write units a change"),
        f"read units after {ONE // 2}/{ONE} changes",
    )
    lines = (head, ("---", *("---:" for _ in head[1:])), *map(_cells, rows))
    choice = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return PAGE.read_text().format(date=date, choice=choice, seeds=seeds, each=EVENTS, others=OTHERS, one=ONE)


def _sum(row: Row, names: Iterable[str]) -> Counted:
    return sum((row.faults[name] for name in names), Counted())


def _cells(row: Row) -> tuple[str, ...]:
    claims, net = row.design.claims, NET * row.design.claims.units
    wrong = (_sum(row, names) for names in GROUPS.values())
    first, last = (read.read_units for read in row.spent.reads)
    return (
        row.design.name,
        _memory(claims.memory) + (", unless a process dies" if not claims.survives_death else ""),
        *(f"{counted.lost:,}/{counted.doubled:,}{net}" for counted in wrong),
        LIMITS[claims.limit],
        f"{row.spent.write_units:.2f}{', grows' if row.spent.grows else ''}",
        f"{first:.0f}/{last:.0f}",
    )


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
