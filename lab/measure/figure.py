"""`Figure`: a measured number beside its goal, which is the most that it should be or, where more
is better, the least.

Rule 1: Every figure has a least, below which hardly anything was done: a run that did nothing
passes nowhere.
Rule 2: What depends on the machine has its goal beside it, and is never `judged`; nor is what is
known to miss it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """most: None where `least` is the goal."""

    name: str
    value: float
    most: float | None
    least: float
    judged: bool = True

    def __post_init__(self) -> None:
        if not self.least > 0:
            raise ValueError(f"{self.name}: a run that did nothing would pass")

    @property
    def is_met(self) -> bool:
        return self.least <= self.value and (self.most is None or self.value <= self.most)

    def __str__(self) -> str:
        goal = f"at least {self.least:g}" if self.most is None else f"{self.most:g}"
        return (
            f"{self.name:<84}{self.value:9,.3f}  goal "
            f"{goal:<14}{'met' if self.is_met else 'MISSED'}"
        )


Part = Callable[[bool], Iterator[Figure]]
"""Some figures that are measured together; True: little of all, with the same goals."""
