"""`Charge`: what requests cost by AWS's published rules, as a sum that can be subtracted."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Charge:
    """Requests, their read and write units in their Region, and the write units each further Region pays again."""

    requests: int = 0
    read_units: float = 0.0
    write_units: int = 0
    replicated_units: int = 0

    def __add__(self, other: "Charge") -> "Charge":
        return Charge(
            self.requests + other.requests,
            self.read_units + other.read_units,
            self.write_units + other.write_units,
            self.replicated_units + other.replicated_units,
        )

    def __sub__(self, other: "Charge") -> "Charge":
        return self + Charge(-other.requests, -other.read_units, -other.write_units, -other.replicated_units)
