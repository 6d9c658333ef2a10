"""What a run of the demo leaves, and what speaks against ours in it.

Rule 1: A run proves something only if every part of the protocol had work to do, so a run without a stray settled or a
delta cleaned speaks against ours, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lab.demo.packed import Packed
from lab.demo.runners import Ours, Runner

REGIONS = ("eu-west-1", "us-east-1")


@dataclass(slots=True)
class Reads:
    """What the readers of one design saw."""

    made: int = 0
    untrue: int = 0
    short: int = 0
    read_units: float = 0
    example: str = ""


@dataclass(slots=True)
class Outcome:
    """What a run leaves: the truth, what each design says in each Region, and what happened on the way."""

    truth: dict[str, int]
    changes: int
    designs: Sequence[Runner]
    sizes: Mapping[str, int] = field(default_factory=dict)  # how many changes each counter has
    values: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    reads: dict[str, Reads] = field(default_factory=dict)
    deliveries: int = 0
    answers_lost: int = 0
    fail_overs: int = 0
    partitions: int = 0
    redeliveries: int = 0
    late: int = 0
    seconds: dict[str, float] = field(default_factory=dict)  # where the time went

    @property
    def ours(self) -> Ours:
        return next(design for design in self.designs if isinstance(design, Ours))

    @property
    def packed(self) -> Packed:
        return next(design for design in self.designs if isinstance(design, Packed))

    def wrong(self, design: Runner, region: str, counters: Iterable[str]) -> int:
        """How many of `counters` are not their true value."""
        values = self.values[design.name][region]
        return sum(values.get(counter, 0) != self.truth[counter] for counter in counters)

    @property
    def numbers_wrong(self) -> list[str]:
        """What is wrong with the numbers of ours, and how often."""
        both = (self.ours, self.packed)
        reads = [self.reads[design.name] for design in both]
        found = [
            (
                "values of ours that are wrong at the end",
                sum(self.wrong(d, r, self.truth) for d in both for r in REGIONS),
            ),
            ("reads of ours that were not the sum of a real set of changes", sum(each.untrue for each in reads)),
            (
                "reads of ours that lacked a change their Region had acknowledged in time",
                sum(each.short for each in reads),
            ),
        ]
        return [f"{what}: {count:,}" for what, count in found if count]

    @property
    def not_shown(self) -> list[str]:
        """What this run cannot have shown of ours, in sentences."""
        report = self.ours.report
        found = [
            (report.folded, "no delta was folded, so no value came from a checkpoint."),
            (report.settled, "no stray was settled, so nothing is shown of changes that come late."),
            (report.cleaned, "no delta was cleaned, so nothing is shown of deletes."),
            (self.packed.accepted, "no change was accepted in a pack, so nothing is shown of packs."),
        ]
        return [what for count, what in found if not count]
