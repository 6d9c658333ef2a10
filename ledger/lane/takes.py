"""Checks before the first request that a period takes a change: of its own time, and none when
it is over (keep.py).
"""

from ledger.core.checks import to_datetime
from ledger.core.errors import InvalidCounter, InvalidTime, PeriodOver
from ledger.core.period import check_base
from ledger.core.settings import Settings
from ledger.core.values import Delta


def check_of_period(settings: Settings, counter: str, time_ms: int) -> None:
    """Raises InvalidCounter for a base, and InvalidTime where the time is not in the name's
    period.
    """
    if settings.keep_of(counter) is None:
        return
    term = settings.term_of(counter)
    if term is None:
        raise InvalidCounter(
            f"{counter} ends with no period, and only periods count there. Nothing was written. "
            "End the name with a period such as @2026-11: Period.name makes it from a time."
        )
    check_base(term.base)
    if not term.is_good_for(time_ms):
        raise InvalidTime(
            f"{to_datetime(time_ms).isoformat()} is not in the period of {counter}. Nothing was "
            "written. Name the counter by the time of the change, once, before its first "
            "attempt: Period.name does."
        )


def check_takes(settings: Settings, delta: Delta, now_ms: int) -> None:
    """Raises PeriodOver, with the delta, where the delta's period takes no more changes."""
    term = settings.term_of(delta.lane.counter)
    if term is not None:
        try:
            term.check_takes(now_ms)
        except PeriodOver as error:
            error.delta = delta
            raise
