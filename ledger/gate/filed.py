"""A segment of a gate.

Rule 1: its name tells its content, so that two rolls never write two things under one name.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from ledger import tokens
from ledger.gate.outcome import check_outcome
from ledger.values import VERSION_MAX, Lane


@dataclass(frozen=True, slots=True)
class Filed:
    """A segment of a gate: outcomes that a roll saw, with the `low` of the gate that it saw them in."""

    lane: Lane
    hi: str
    version: int
    low: str
    outcomes: Mapping[str, int]

    def __post_init__(self) -> None:
        names = list(self.outcomes)
        if not names or names != sorted(names) or not all(map(tokens.is_token, (self.hi, self.low, *names))):
            raise ValueError("a segment lists at least one token, in their order")
        if names[-1] > self.hi or not 1 <= self.version <= VERSION_MAX:
            raise ValueError(f"no token lies above hi, and version is from 1 to {VERSION_MAX}")
        for outcome in self.outcomes.values():
            check_outcome(outcome)

    @property
    def digest(self) -> str:
        text = ",".join(f"{token}={outcome}" for token, outcome in self.outcomes.items())
        return hashlib.sha256(f"{self.low}:{text}".encode()).hexdigest()[:32]
