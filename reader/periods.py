"""The program `periods` reads the balance of several periods of a counter.

Rule 1: It reads the periods of a limited counter together, from their gates as this Region has
them; and so the others.
Rule 2: A period that has not opened has the limit of its base, with which it would open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ledger.core.requests import Program
from ledger.core.settings import Settings
from ledger.gate.gates import Gates
from reader.balance import Balance
from reader.read import balances
from reader.standing import Standing, read_standings


@dataclass(frozen=True, slots=True)
class PeriodBalance:
    """A period of a counter.

    start, end: by its zone's calendar. standing: for a counter with a limit.
    """

    counter: str
    start: datetime
    end: datetime
    value: int
    count: int
    standing: Standing | None = field(default=None)


Found = dict[str, Balance | Standing]


def periods(names: Sequence[str], settings: Settings, *, consistent: bool) -> Program[Found]:
    """The balance, or the standing, of each name. Raises what reading it raises."""
    if not names or settings.limit_of(names[0]) is None:
        found: Found = {}
        if names:
            found |= yield from balances(names, settings, consistent=consistent)
        return found
    gates = [Gates.limited(settings, name, "periods") for name in names]
    return dict(zip(names, (yield from read_standings(gates, consistent=consistent)), strict=True))
