"""The jobs of the work queue, one type each: what to do in one lane.

Rule 1: The rest of a job is a job again, so a job that stops or fails goes on behind what it did.
tries: how often the compactor sent it again.
"""

from __future__ import annotations

from dataclasses import dataclass

from ledger.core.values import Lane
from ledger.lane.named import Named


@dataclass(frozen=True, slots=True)
class Look:
    """Visit the lane if that is due. follows: the version that the visit before it left, of a lane
    so busy that its visits follow each other. since: the sort key at which a visit of everything
    stopped; this one goes on behind it."""

    lane: Lane
    follows: int | None = None
    since: str | None = None
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Settle:
    """Settle these items: they came late.

    again: the first job that named them found them above the watermark.
    """

    lane: Lane
    named: Named
    again: bool = False
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Sweep:
    """Look at everything, also at what lies at or below the watermark. since: as in Look."""

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
"""The worker serves the jobs of a lane in this order: an evaluation sees what a settle did, and no
job waits for a verify."""

VERIFY_S = 300
"""Seconds by which a verify comes later than other jobs of its lane: beside them it might not
fit a function's time.
"""

KEYS_MAX = 100
"""Sort keys that one job names, so that its message has 10 KB at most."""
