"""`Goal`: a figure beside the most that it should be, and the least, below which hardly anything was done."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Goal:
    name: str
    value: float
    most: float
    least: float = 0

    @property
    def is_met(self) -> bool:
        return self.least <= self.value <= self.most

    def __str__(self) -> str:
        return f"{self.name:<72}{self.value:8.4f}  goal {self.most:g}  {'ok' if self.is_met else 'MISSED'}"
