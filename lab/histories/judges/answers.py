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
    decided. is_named: it is a hold that its name decides, for every length. up_to: it is a change
    of which a part may count."""

    delta: Delta
    is_hold: bool = False
    outcome: int | None = None
    is_named: bool = False
    up_to: bool = False

    @property
    def least(self) -> int:
        """It is refused only where not even this can be taken."""
        amount = self.delta.change
        return amount // abs(amount) if self.up_to else amount

    def may_count(self, outcome: int | None) -> bool:
        """Whether such a change counts, if it counts."""
        amount = self.delta.change
        if not self.up_to or outcome is None:
            return outcome == amount
        return 0 < outcome <= amount or amount <= outcome < 0


@dataclass(frozen=True, slots=True)
class Decided:
    """An answer about a change or a hold, of a moment since that step. how: its end, for which the
    call asked."""

    one: Asked
    decision: Decision
    since: int
    how: int | None = None


@dataclass(frozen=True, slots=True)
class Conflicted:
    """A change of which a part may count is told that another one counts."""

    one: Asked
    counts: int | None


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
