"""`Figure`: a measured number beside its goal, which is the most that it should be or, where more
is better, the least; and `cpu_ratio`.

Rule 1: Every figure has a least, below which hardly anything was done: a run that did nothing
passes nowhere.
Rule 2: What depends on the machine has its goal beside it, and is never `judged`.
"""

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

ASYNC = f"{sys.prefix}/async"
"""Where `make` puts aiobotocore, whose botocore is not ours."""


@dataclass(frozen=True, slots=True)
class Figure:
    """most: None where `least` is the goal. why: it may miss its goal; then it is not judged."""

    name: str
    value: float
    most: float | None
    least: float
    judged: bool = True
    why: str = ""

    def __post_init__(self) -> None:
        if not self.least > 0:
            raise ValueError(f"{self.name}: a run that did nothing would pass")

    @property
    def is_met(self) -> bool:
        return self.least <= self.value and (self.most is None or self.value <= self.most)

    @property
    def is_wrong(self) -> bool:
        """Whether it misses its goal, and nothing says why; or hardly anything was done."""
        excused = self.why and self.value >= self.least
        return self.judged and not self.is_met and not excused

    def __str__(self) -> str:
        goal = f"at least {self.least:g}" if self.most is None else f"{self.most:g}"
        return (
            f"{self.name:<84}{self.value:9,.3f}  goal "
            f"{goal:<14}{'met' if self.is_met else 'MISSED'}"
            + (f"\n  because {self.why}" if self.why and not self.is_met else "")
        )


@dataclass(frozen=True, slots=True)
class Shown:
    """A line that has no goal."""

    text: str

    def __str__(self) -> str:
        return self.text


Part = Callable[[bool], Iterator[Figure | Shown]]
"""Some figures that are measured together; True: little of all, with the same goals."""


def put_of(item: Any, table: str) -> dict[str, Any]:
    """What this library asks of put_item for a delta."""
    condition = {
        "ConditionExpression": "attribute_not_exists(pk)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    return {"TableName": table, "Item": item, **condition}


Calls = Callable[[Sequence[Any]], int]
"""Makes calls of what is given, and says how many."""


def cpu_ratio(rounds: int, ours: Calls, theirs: Calls, given: Callable[[], Sequence[Any]]) -> float:
    """The CPU of one of our calls over that of one of theirs.

    `given` is not in it, and the first round warms up.
    """
    ratios = []
    for _ in range(rounds + 1):
        arguments, taken = given(), []
        for calls in (ours, theirs):
            began = time.process_time()
            made = calls(arguments)
            taken.append((time.process_time() - began) / made)
        ratios.append(taken[0] / taken[1])
    return statistics.median(ratios[1:])


def one_by_one(call: Callable[[Any], object]) -> Calls:
    return lambda arguments: len([call(argument) for argument in arguments])
