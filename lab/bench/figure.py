"""`Figure`: a measured number beside its goal."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured, and the most that it should be."""

    name: str
    measured: float
    goal: float

    def __str__(self) -> str:
        missed = "" if self.measured <= self.goal else "  MISSED"
        return f"{self.name:<66}{self.measured:8.3f}  goal {self.goal:.1f}{missed}"
