"""What callers and readers of a limited counter ask for, and what they are told."""

from collections.abc import Mapping
from dataclasses import dataclass

from ledger.core.limit import Limit
from ledger.core.values import Delta, Lane
from ledger.gate.answer import Decision
from ledger.gate.copies import Copies


@dataclass(slots=True)
class Asked:
    """A change or a hold that was asked for. outcome: what a caller was told last, if it was
    decided. is_named: it is a hold that its name decides, for every length."""

    delta: Delta
    is_hold: bool = False
    outcome: int | None = None
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class Decided:
    """An answer about a change or a hold, of a moment since that step. how: its end, for which the
    call asked."""

    one: Asked
    decision: Decision
    since: int
    how: int | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """All that a lane decided, by a strong read at its home (`whole`) or from copies."""

    lane: Lane
    outcomes: Mapping[str, int]
    whole: bool


@dataclass(frozen=True, slots=True)
class Stood:
    """A read in a Region, while its limit was this all the time."""

    region: str
    copies: Copies
    limit: Limit
