"""The programs `measure`, a counter's value beside its thresholds, and `crossed`, which of them hold.

Rule 1: The value, and the limit that a threshold is of, come from one strong read.
Rule 2: A threshold is of the limit as it is set now, in the gate with the first rights; where there is no such gate
yet, of that with which the counter would open: of a period its base's, else as the settings say. What a period that is
over leaves to the next one is still of its own limit here, else December would publish that November was full.
Rule 3: A threshold says nothing of a counter whose limit lacks its side: it neither holds nor ceases to hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ledger.gate.gates import Gates
from ledger.gate.recount import standings
from ledger.limit import IN, Threshold
from ledger.requests import Instant, Now, Program
from ledger.settings import Settings
from reader.read import balances
from reader.standing import standing_of


@dataclass(frozen=True, slots=True)
class Crossed:
    """A threshold that holds of a counter's value.

    name: the threshold's. above, below: its number, one of the two; what one of a limit came to. value: what was read;
    as_of: when that read began.
    """

    name: str
    above: int | None
    below: int | None
    value: int
    as_of: datetime


@dataclass(frozen=True, slots=True)
class Measured:
    """thresholds: those given, in their order, as above or below a number; None for one that says nothing here."""

    value: int
    as_of: datetime
    thresholds: tuple[Threshold | None, ...]


def measure(counter: str, thresholds: Sequence[Threshold], settings: Settings) -> Program[Measured]:
    """Raises DamagedItem, LimitMismatch, ReadTooSlow and the TableErrors."""
    gates = Gates.of(settings, counter)
    if gates is None:
        balance = (yield from balances([counter], settings, consistent=True))[counter]
        return Measured(balance.value, balance.as_of, tuple(each.at(None, None) for each in thresholds))
    began: Instant = yield Now()
    (copies,) = yield from standings([gates], consistent=True)
    if not copies.has_opened(gates):
        gates = replace(gates, limit=(yield from gates.opening(at_home=False)))
    found = standing_of(gates, copies, began)
    carried = sum(gate.carried for gate in copies.gates)
    ceiling = None if found.ceiling is None else found.ceiling + carried
    return Measured(found.value, found.as_of, tuple(each.at(found.floor, ceiling) for each in thresholds))


def crossed(counter: str, thresholds: Sequence[Threshold], settings: Settings) -> Program[tuple[Crossed, ...]]:
    """Those that hold now, in their order. Raises what `measure` does."""
    seen = yield from measure(counter, thresholds, settings)
    return tuple(
        Crossed(each.name, each.above, each.below, seen.value, seen.as_of)
        for each in seen.thresholds
        if each is not None and each.side_of(seen.value) == IN
    )
