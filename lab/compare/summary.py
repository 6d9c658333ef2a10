"""The table that a choice is made by: a row for each design, in Markdown, for docs/comparison.md.

Rule 1: Every cell is measured in the run at hand or is a claim that tests/lab/designs/test_claims.py holds.
Rule 2: Nothing here knows a design by its name.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lab.compare.accuracy import NET, Accuracy
from lab.compare.changes import Counted
from lab.compare.cost import Spent
from lab.compare.scale import Read
from lab.compare.speed import Pace
from lab.designs import Claims, Design, Memory

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
    return markdown(heads, ((each.name, *_abilities(each.claims)) for each in designs))


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


LIMITS = {"hard": "yes, in one Region", "soft": "nearly", "none": "no"}


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


def _abilities(claims: Claims) -> tuple[str, ...]:
    found = (claims.mismatch, claims.regions, claims.history, claims.reset)
    mismatch, regions, history, reset = ("yes" if each else "no" for each in found)
    changes = "of 1" if claims.units else "any"
    return memory(claims.memory), mismatch, LIMITS[claims.limit], regions, history, reset, changes


def _sum(row: Row, names: Sequence[str]) -> Counted:
    return sum((row.accuracy.faults[name] for name in names), Counted())


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _line(heads)
    yield _line(("---", *("---:" for _ in heads[1:])))
    yield from map(_line, rows)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
