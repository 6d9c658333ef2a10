"""The jobs of the work queue, one type each: what is to be done in one lane.

Rule 1: What is left of a job is a job again, so whoever is stopped or fails goes on behind what was done. `tries` says
how often it was sent again.
"""

from __future__ import annotations

from dataclasses import dataclass

from ledger.lane.named import Named
from ledger.values import Lane


@dataclass(frozen=True, slots=True)
class Look:
    """Visit the lane if that is due. follows: the version that the visit before it left, of a lane so busy that its
    visits follow each other. since: the sort key behind which a visit of everything goes on that was stopped there."""

    lane: Lane
    follows: int | None = None
    since: str | None = None
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Settle:
    """Settle these items: they came late. again: they were above the watermark when they were named first."""

    lane: Lane
    named: Named
    again: bool = False
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Sweep:
    """Look at everything, also at what lies at or below the watermark. since: as of Look."""

    lane: Lane
    since: str | None = None
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Verify:
    """Recount the lane."""

    lane: Lane
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Compare the value of the lane's counter with its thresholds."""

    lane: Lane
    tries: int = 0


Job = Look | Settle | Sweep | Verify | Evaluate

ORDER = (Settle, Sweep, Look, Evaluate, Verify)
"""The jobs of a lane are served in this order: an evaluation sees what was settled, and nobody waits for a verify."""

VERIFY_S = 300
"""How much later than others of its lane a verify comes: beside them it might not fit the time of a function."""

KEYS_MAX = 100
"""Sort keys that one job names, so that its message has 10 KB at most."""
