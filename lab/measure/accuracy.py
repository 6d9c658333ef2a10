"""`python -m lab.compare.accuracy`: the events that each design loses and doubles, on the same events and faults.

Rule 1: all is measured on the simulator from seeds, so every number comes out the same again.
Rule 2: nothing here or below it knows a design by its name.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.compare.changes import CEILING, EVENTS, Counted, Limit, worst
from lab.compare.one_counter import count, limit
from lab.compare.scenarios import EU, LIMITS, OTHERS, SCENARIOS
from lab.designs import Design, every
from lab.designs.design import FOR_EVER
from ledger.settings import Settings

SEEDS = range(20)
SETTINGS = Settings(table="counters", region=EU, fold_min=1, fold_max=8)
"""Our defaults for every time; folded at once and in several commits, so that few events do meet all of it."""

ONCE = ("at once", "no reply", "crash", "Regions", "cut off", "failover")
AGAIN = ("late", "twice", "9 min", "11 min", "1 day", "8 days")
NAME_WIDTH, WIDTH = 45, 9
NET = " *"


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Of a design, by the name of what befell it; of limits the worst of all seeds, None where it has none.

    net: its changes are all 1, so that in one counter a lost event and a doubled one hide each other.
    """

    design: str
    net: bool
    faults: Mapping[str, Counted]
    limits: Mapping[str, Limit | None]


def measure(design: Design, seeds: Sequence[int] = SEEDS) -> Accuracy:
    """On the simulator."""
    return Accuracy(
        design.name,
        design.claims.units,
        {each.name: sum((count(design, each, seed) for seed in seeds), Counted()) for each in SCENARIOS},
        {each.name: worst(limit(design, each, seed) for seed in seeds) for each in LIMITS},
    )


def measure_all(seeds: Sequence[int] = SEEDS) -> list[Accuracy]:
    return [measure(design, seeds) for design in every(SETTINGS)]


def mistakes(design: Design, found: Accuracy) -> Iterator[str]:
    """What a design that counts every change once, for ever, in all Regions has wrong; of others nothing is said."""
    if design.claims.memory != FOR_EVER or not design.claims.regions:
        return
    for fault, counted in found.faults.items():
        missed = counted.reads.missed if fault != "late" else 0  # those are strays
        if counted.lost or counted.doubled or counted.gave_up or not counted.events:
            yield (
                f"{design.name}, {fault}: of {counted.events} events {counted.lost} lost, {counted.doubled} doubled, "
                f"{counted.gave_up} given up"
            )
        if counted.reads.false or missed or not counted.reads.made:
            yield f"{design.name}, {fault}: of {counted.reads.made} reads {counted.reads.false} false, {missed} missed"
    for scenario, kept in found.limits.items():
        if design.claims.limit == "everywhere" and kept != Limit(0, 0):
            yield f"{design.name}, {scenario}: the ceiling of {CEILING} was not kept or not reached: {kept}"


def report(results: Sequence[Accuracy], seeds: Sequence[int]) -> Iterator[str]:
    """The lines that are printed of what was measured on the simulator."""
    yield f"seeds {seeds[0]} to {seeds[-1]}, {EVENTS} events of one counter each: {EVENTS * len(seeds):,} in a column"
    yield f"{NET.strip()} changes of 1: of each counter the difference, the least that was lost or doubled"
    yield f"1 day and 8 days: {OTHERS} others of each counter meanwhile, {OTHERS * len(seeds):,} in the column"
    for columns in (ONCE, AGAIN):
        yield ""
        yield from table("events lost / doubled", results, columns, wrong)
    for columns in (ONCE, AGAIN):
        yield ""
        yield from table("reads false / missing an event", results, columns, wrong_reads)
    yield ""
    limits = list(dict.fromkeys(name for result in results for name in result.limits))
    yield from table(f"at worst beyond {CEILING}: value / granted", results, limits, beyond)
    total = sum((each for result in results for each in result.faults.values()), Counted())
    yield ""
    yield f"in all {total.events:,} events, {total.gave_up} whose caller gave up; {total.reads.made:,} reads"


def table(
    title: str, results: Iterable[Accuracy], columns: Sequence[str], cell: Callable[[Accuracy, str], str]
) -> Iterator[str]:
    """A row for each design, a column for each of what befell it."""
    yield f"{title:{NAME_WIDTH}}" + "".join(f"{column:>{WIDTH}}" for column in columns)
    for result in results:
        cells = "".join(f"{cell(result, column):>{WIDTH}}" for column in columns)
        yield f"{result.design + NET * result.net:{NAME_WIDTH}}{cells}"


def wrong(result: Accuracy, fault: str) -> str:
    counted = result.faults[fault]
    return f"{counted.lost}/{counted.doubled}"


def wrong_reads(result: Accuracy, fault: str) -> str:
    reads = result.faults[fault].reads
    return f"{reads.false}/{reads.missed}"


def beyond(result: Accuracy, scenario: str) -> str:
    """At worst of all seeds."""
    limit = result.limits[scenario]
    return "none" if limit is None else f"{limit.beyond}/{limit.granted}"


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m lab.compare.accuracy", description=__doc__.splitlines()[0]).parse_args()
    print("\n".join(report(measure_all(), SEEDS)))
