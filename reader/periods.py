"""The program `periods` reads the balance of several periods of a counter.

Rule 1: It reads the periods of a limited counter together, from their gates as this Region has
them; and so the others.
Rule 2: A period that has not opened has the limit of its base, with which it would open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ledger.core.checks import check_counter, to_datetime
from ledger.core.errors import InvalidInput, shown
from ledger.core.period import NUMBERED, Period, zone_of
from ledger.core.requests import Program
from ledger.core.settings import Settings
from ledger.gate.gates import Gates
from reader.balance import Balance
from reader.read import balances
from reader.rules import Rules
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


def periods(
    rules: Rules, base: str, period: Period, last: int = 12
) -> Program[tuple[PeriodBalance, ...]]:
    """Raises what reading one of them raises."""
    given: object = period
    if not isinstance(given, Period):
        raise InvalidInput(f"period is a Period, such as Period('month'), not {shown(given)}.")
    base, settings = check_counter(base), rules.settings
    if settings.plan(base).keep is None:
        raise InvalidInput(
            f"No prefix of periods={shown([*settings.periods], 200)} fits {base}. Give its prefix "
            "a Keep in periods= of the Settings (LEDGER_PERIODS)."
        )
    now_ms = rules.clock()
    every = period.last(base, last, to_datetime(now_ms))
    names = [name for name in every if settings.plan(name).is_kept(now_ms)]
    for name in names[:1]:  # else all of them would read as 0
        settings.plan(name).check_window()
    yield from rules.shape.program(base)
    found = yield from _read(names, settings, consistent=rules.consistent)
    return tuple(
        PeriodBalance(name, period.start(name), period.end(name), of.value, of.count, standing)
        for name, of in found.items()
        for standing in [of if isinstance(of, Standing) else None]
    )


def asked_for(
    settings: Settings,
    base: str,
    every: str,
    zone: str | None = None,
    anchor: int = 1,
    begins: datetime | None = None,
) -> Period:
    """The Period that a person asks for.

    every: a unit, or a number of hours or days: 5h, 30d. begins: when one of such windows begins;
    left out, as the settings say for the base. anchor is of months. Raises InvalidInput.
    """
    if begins is not None and anchor != 1:
        raise InvalidInput(
            "anchor is of months, begins of hours or days such as 5h. Give one of them."
        )
    unit, number = every, 1
    if (numbered := NUMBERED.fullmatch(every)) is not None:
        unit, number = _UNITS[numbered[2]], int(numbered[1])
    keep = settings.plan(check_counter(base)).keep
    if begins is None and number > 1 and keep is not None and keep.anchor is not None:
        begins = keep.anchor.replace(tzinfo=zone_of(zone))
    return Period(unit, zone or "UTC", anchor if begins is None else begins, number)


_UNITS = {"h": "hour", "d": "day"}
Found = dict[str, Balance | Standing]


def _read(names: Sequence[str], settings: Settings, *, consistent: bool) -> Program[Found]:
    """The balance, or the standing, of each name."""
    if not names or settings.limit_of(names[0]) is None:
        found: Found = {}
        if names:
            found |= yield from balances(names, settings, consistent=consistent)
        return found
    gates = [Gates.limited(settings, name, "periods") for name in names]
    return dict(zip(names, (yield from read_standings(gates, consistent=consistent)), strict=True))
