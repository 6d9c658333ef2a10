"""The programs `measure`, which reads a counter's value beside its thresholds, and `crossed`: those
that hold.

Rule 1: The value, and the limit of a threshold, come from one strong read.
Rule 2: A threshold follows the limit as it is set now, in the gate with the first rights; where
there is no such gate yet, the limit with which the counter would open: for a period its base's,
else that of the settings. The part of its ceiling that a period passed on still belongs to its own
limit, else December would publish that November was full.
Rule 3: A threshold does not apply to a counter whose limit lacks its side: it neither holds nor
ceases to hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from ledger.core.checks import check_counter
from ledger.core.limit import IN, Threshold
from ledger.core.requests import Program
from ledger.core.settings import Settings
from ledger.gate.gates import Gates
from reader.read import balances
from reader.rules import Rules
from reader.standing import read_standings


@dataclass(frozen=True, slots=True)
class Crossed:
    """A threshold that holds for a counter's value.

    name: the threshold's. above, below: its number, in one of the two, also that of a threshold of
    a limit. value: as it was read; as_of: when that read began.
    """

    name: str
    above: int | None
    below: int | None
    value: int
    as_of: datetime


class Measured(NamedTuple):
    """thresholds: those given, in order, as above or below a number; None for one that does not
    apply here.
    """

    value: int
    as_of: datetime
    thresholds: tuple[Threshold | None, ...]


def measure(counter: str, thresholds: Sequence[Threshold], settings: Settings) -> Program[Measured]:
    """Raises DamagedItem, LimitMismatch, ReadTooSlow and the TableErrors."""
    gates = Gates.of(settings, counter)
    if gates is None:
        balance = (yield from balances([counter], settings, consistent=True))[counter]
        return Measured(
            balance.value,
            balance.as_of,
            tuple(threshold.at(None, None) for threshold in thresholds),
        )
    (found,) = yield from read_standings([gates], consistent=True, filed=False)
    at_limit = tuple(threshold.at(found.floor, found.ceiling) for threshold in thresholds)
    return Measured(found.value, found.as_of, at_limit)


def crossed(rules: Rules, counter: str) -> Program[tuple[Crossed, ...]]:
    """The thresholds that hold now, in order. Raises what `measure` does."""
    counter = check_counter(counter)
    thresholds = rules.settings.thresholds_of(counter)
    yield from rules.first(counter)
    if not thresholds:
        return ()
    seen = yield from measure(counter, thresholds, rules.settings)
    return tuple(
        Crossed(threshold.name, threshold.above, threshold.below, seen.value, seen.as_of)
        for threshold in seen.thresholds
        if threshold is not None and threshold.side_of(seen.value) == IN
    )
