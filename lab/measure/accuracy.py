"""The events that each design loses and doubles, on the same events and faults, and what is wrong with a row of ours.

Rule 1: All is measured on the simulator from seeds, so every number comes out the same again.
Rule 2: Nothing here or below it knows a design by its name.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.designs import Design
from lab.designs.design import FOR_EVER
from lab.measure.changes import CEILING, Counted, Limit
from lab.measure.one_counter import count, limit
from lab.measure.scenarios import EU, LIMITS, SCENARIOS
from ledger.settings import Settings

SEEDS = range(20)
SETTINGS = Settings(table="counters", region=EU, fold_min=1, fold_max=8)
"""Our defaults for every time; folded at once and in several commits, so that few events do meet all of it."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Of a design, by the name of what befell it; of limits the worst of all seeds, none where it has no limits."""

    design: Design
    faults: Mapping[str, Counted]
    limits: Mapping[str, Limit]


def measure(design: Design, seeds: Sequence[int] = SEEDS) -> Accuracy:
    """On the simulator."""
    faults = {each.name: sum((count(design, each, seed) for seed in seeds), Counted()) for each in SCENARIOS}
    limits = {}
    for each in LIMITS if design.claims.limit != "none" else ():
        kept = [limit(design, each, seed) for seed in seeds]
        limits[each.name] = Limit(*map(max, zip(*kept, strict=True)))
    return Accuracy(design, faults, limits)


def mistakes(found: Accuracy) -> Iterator[str]:
    """What a design that counts every change once, for ever, in all Regions has wrong; of others nothing is said."""
    name, claims = found.design.name, found.design.claims
    if claims.memory != FOR_EVER or not claims.regions:
        return
    for fault, counted in found.faults.items():
        missed = counted.missed if fault != "late" else 0  # those are strays
        if counted.lost or counted.doubled or counted.gave_up or not counted.events:
            yield (
                f"{name}, {fault}: of {counted.events} events {counted.lost} lost, {counted.doubled} doubled, "
                f"{counted.gave_up} given up"
            )
        if counted.false or missed or not counted.reads:
            yield f"{name}, {fault}: of {counted.reads} reads {counted.false} false, {missed} missed"
    for scenario in LIMITS if claims.limit == "everywhere" else ():
        kept = found.limits.get(scenario.name)
        if kept != Limit(0, 0):
            yield f"{name}, {scenario.name}: the ceiling of {CEILING} was not kept or not reached: {kept}"
