"""docs/comparison.md: what `make compare` found, for someone who has to choose.

Rule 1: Every figure is from the run that is given.
Rule 2: A sentence says nothing that a table below it does not show.
Rule 3: Tables are the lines of accuracy.py and tables.py, so that there is one of each.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lab.compare import accuracy, tables
from lab.compare.accuracy import SEEDS, Accuracy
from lab.compare.cost import ONE, SHOP, Spent
from lab.compare.scale import Read
from lab.compare.speed import Pace, Trips
from lab.compare.tables import Row
from lab.designs.trial import SETTINGS
from ledgerctl.bill import PRICES
from ledgerctl.lane import PARTITION_WRITE_UNITS, changes_max

FULL = 38  # changes of a pack that takes one write unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A whole run. events: where the changes of the bill came from. Sequences are in the order of the designs."""

    date: str
    engine: str
    events: str
    accuracy: Sequence[Accuracy]
    shop: Sequence[Spent]
    one: Sequence[Spent]
    trips: Sequence[Trips]
    paces: Sequence[Pace]
    reads: Sequence[Sequence[Read]]
    wall: int
    seeds: Sequence[int] = SEEDS

    @property
    def mistakes(self) -> list[str]:
        """What is wrong with a row that has to be right, or did nothing."""
        wrong = [each for row in self.rows for each in accuracy.mistakes(row.design, row.accuracy)]
        return wrong + [
            f"{pace.design}: no change by {pace.threads} threads" for pace in self.paces if not pace.changes
        ]

    @property
    def rows(self) -> list[Row]:
        """The designs as the first table has them."""
        found = zip(self.accuracy, self.one, self.reads, self.hot(32), strict=True)
        return [Row(one.design, exact, one, reads, pace) for exact, one, reads, pace in found]

    def hot(self, threads: int) -> list[Pace]:
        """So many writers on one counter."""
        return [pace for pace in self.paces if (pace.counters, pace.threads) == (1, threads)]


def page(found: Found) -> str:
    """The whole document."""
    return "\n".join(_parts(found)).strip() + "\n"


def _parts(found: Found) -> Iterator[str]:
    yield f"""# Ways to count in DynamoDB, side by side

`make compare` wrote this page on {found.date}, with {found.engine} as the engine. It runs the seven ways of counting
that [AWS's guidance](https://aws.amazon.com/blogs/database/implement-resource-counters-with-amazon-dynamodb/)
describes, those that others build of them, and this library: each written as its author would defend it, in
[lab/designs/](../lab/designs/__init__.py), a file each. Counts come out the same again, to the unit; speed
is only a ratio to plain `ADD` in the same run.

## The table to choose by
"""
    yield from tables.choice(found.rows)
    yield f"""
- Lost and doubled: of events whose callers send them again until they are answered, with the faults of
  [Accuracy](#accuracy): in *crashes* every first delivery dies, in *repeats* every message comes twice. `*`: a way that
  counts things, where a lost event and a doubled one hide each other, so the least that it can be.
- A limit: a ceiling, with writers at once. Write units: of a change of one busy counter in one Region, with all its
  housekeeping; *grows*: with every change that is in the item.
- Read units: at rest, when housekeeping is done (`~`: worked out). While changes come, a read of ours sums a tail, too:
  [`ledgerctl cost`](ledgerctl.md) works out a read, a change and a month at your own rate.
- Changes a second: without housekeeping; plain `ADD` is measured against itself, too, so what its row differs from 1 by
  is the noise of this run. For good, on AWS, an item takes {PARTITION_WRITE_UNITS:,} `ADD`s a second or half as many
  transactions, in all Regions together; a lane of ours takes {changes_max(SETTINGS):,} changes, because each is
  deleted again, and {changes_max(SETTINGS, FULL):,} in packs of {FULL}.

What follows from it:

- **Nearly right is enough, in one Region:** atomic `ADD`. Nothing is cheaper or simpler; a retry counts twice.
- **A limit must hold at the write:** this library with a [limit](limits.md), in one Region or several, and what is
  refused stays refused. In one Region the transaction with a marker holds it, too; it takes four times the units, keeps
  an item for every change, and on AWS transactions on one item conflict.
- **Repeats come within ten minutes, or never:** the transaction with a client token, at half the units of the marker's.
- **A few thousand members of something, each once:** the set, until its item is full.
- **Numbers without gaps:** gap-free ids; all writers wait for each other.
- **Every change once, for ever, with writers in several Regions and short reads:** this library. Many at
  once, a queue's or those of many threads, travel in [packs](producers.md#packs) for a tenth of a unit each. The plain
  item collection is as exact, but its reads grow with every change ever made.

## What each can do

Each cell is held by a test, also each "no" (`tests/lab/designs/test_claims.py`).
"""
    yield from tables.abilities(row.design for row in found.rows)
    yield """
AWS's seven are atomic ADD, optimistic with an entity tag and with history, the transactions with a client token and
with a marker, the item collection that is merged, and the set; the others vary them or are built of them. A limit in
two Regions is held by this library alone: see *beyond 15* under Accuracy. Markers could be listed, too, by who files
them by counter.

## Accuracy

On the [simulator](testing.md), where time and Regions can be had: an at-least-once producer, as SQS is, that sends a
message again until it is answered; housekeeping and reads at the same time, every minute.

- *no reply*: answers are lost after the write. *crash*: every process dies once, at each step in turn. *late*: half of
  the messages wait in the queue for a minute.
- *Regions*: two, with lag; *cut off*: and a partition; *failover*: what one Region was asked for is delivered again to
  the other.
- *twice* to *8 days*: the same message again so much later, others in between.

The strongly consistent reads of this library that miss an event under *late* are of *strays*: changes that came later
than `allowed_lateness_ms` after their `at`, safe at once, in the value from the next settle on.
"""
    yield from code(accuracy.report(found.accuracy, found.seeds))
    yield f"""
## Cost

Units by AWS's published rules from the items that crossed the wire, for the same changes, {found.events}.
First {SHOP} changes on many counters, then {ONE} on one; each with all its housekeeping.
"""
    yield from code([*tables.units(found.shop), "", *tables.units(found.one)])
    yield f"""
Dollars for a million changes in 1, 2 and 3 Regions and for a million strongly consistent reads, and a month's storage
after a year of a million changes a month, at the on-demand prices of {PRICES.region} since {PRICES.since}:
"""
    yield from code(tables.dollars(found.shop, found.one))
    made = [pace.changes for pace in found.hot(32)]
    yield f"""
*full*: no item holds so many ids.

## Speed

Changes a second over those of plain `ADD` with as many writers on as many counters, in turns; medians of three rounds,
one for what takes more than four times as long. 32 writers on one counter made {min(made):,} to {max(made):,} changes
a design, so the slow ones' figures say how slow, not more:
"""
    yield from code(tables.rates(found.paces))
    yield f"""
{found.engine} does not let transactions conflict, so on AWS the transactional ways do worse than here.

Round trips of a change and a read; on one counter, latencies over plain `ADD`'s, and what 32 writers met in 1,000
changes:
"""
    yield from code(tables.contention(found.trips, found.hot(1), found.hot(32)))
    yield """
## Scale

After so many changes, a strongly consistent read (`~`: worked out by the meter's rules from the measured ones):
"""
    for title, table in tables.scale(found.reads):
        yield from code([title, "", *table])
        yield ""
    yield f"""A set of ids of 36 characters is full with {found.wall:,}. How fast deltas are folded and deleted, and in
how much memory, is in `make bench`.

## How to repeat it

`make compare` takes ten to twenty minutes on two cores; `make compare EVENTS=file.csv` takes the changes of the bill
from your own events. `python -m lab.compare.accuracy` runs alone, too, and needs no engine. What each part does and
leaves out is at the head of its file, in [lab/compare/](../lab/compare/__init__.py)."""


def code(lines: Iterable[str]) -> Iterator[str]:
    """Lines as they are printed."""
    yield "```text"
    yield from lines
    yield "```"
