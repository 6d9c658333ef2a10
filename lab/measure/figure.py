"""`Figure`: a measured number, with the most that it should be, and the least, below which hardly anything was done.

Rule 1: What depends on the machine may have a goal to be seen beside it, and is never `judged`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    value: float
    most: float | None = None
    least: float = 0.0
    judged: bool = True

    @property
    def is_met(self) -> bool:
        return self.least <= self.value and (self.most is None or self.value <= self.most)

    def __str__(self) -> str:
        goal = f"  goal {self.most:g}" if self.most is not None else ""
        return f"{self.name:<72}{self.value:10,.3f}{goal}{'' if self.is_met else '  MISSED'}"
