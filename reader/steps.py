"""The borders of a series: the instants at which one step ends and the next begins.

Rule 1: Days, weeks (from Monday) and months are those of the zone's calendar, so a day has 23 or 25
hours where clocks change. Hours and timedeltas are elapsed time from the zone's midnight before
`since` on.
Rule 2: A zone affects only what is shown: nothing that counts depends on its rules, which states
change.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from itertools import count

from ledger.core.checks import plain_length, plain_text, to_datetime, to_ms
from ledger.core.errors import InvalidInput, InvalidTime, shown

STEPS_MAX = 10_000
_HOUR, _MILLISECOND, _LONGEST = (
    timedelta(hours=1),
    timedelta(milliseconds=1),
    timedelta(days=36_525),
)
_LAST_MS = to_ms(datetime(9999, 11, 30, tzinfo=UTC))


def check_every(every: object) -> str | timedelta:
    """`every` itself; raises InvalidInput unless it is "hour", "day", "week", "month" or a
    timedelta, to 100 years.
    """
    name = plain_text(every)
    if name is not None and name in ("hour", "day", "week", "month"):
        return name
    length = plain_length(every)
    if length is not None and timedelta(0) < length <= _LONGEST and not length % _MILLISECOND:
        return length
    raise InvalidInput(
        'every is "hour", "day", "week", "month" or a timedelta of whole milliseconds, above 0 '
        f"and at most 100 years, not {shown(every)}."
    )


def borders(
    since_ms: int, until_ms: int, every: str | timedelta, zone: tzinfo, limit: int
) -> list[int]:
    """The borders of the steps that cover the time from `since_ms` to `until_ms`, the end of the
    last one included.

    Raises InvalidInput for more than `limit` steps, and InvalidTime for steps after November 9999.
    """
    found: list[int] = []
    for border_ms in _from(since_ms, _HOUR if every == "hour" else every, zone):
        if border_ms > _LAST_MS:
            raise InvalidTime(
                "These steps would end after November 9999, the end of the calendar used here."
            )
        found.append(border_ms)
        if border_ms >= until_ms or len(found) > limit:
            break
    if found[-1] < until_ms:
        raise InvalidInput(
            f"These are more than {limit:,} steps. Choose a shorter time, or longer steps."
        )
    return found


def _from(since_ms: int, every: str | timedelta, zone: tzinfo) -> Iterator[int]:
    """The last border up to `since_ms`, and those that follow."""
    day = to_datetime(since_ms).astimezone(zone).date()
    if isinstance(every, timedelta):
        step_ms, midnight_ms = every // _MILLISECOND, _midnight_ms(day, zone)
        yield from count(midnight_ms + (since_ms - midnight_ms) // step_ms * step_ms, step_ms)
        return
    if every != "day":
        day = day - timedelta(day.weekday()) if every == "week" else day.replace(day=1)
    before_ms = None
    while True:
        border_ms = _midnight_ms(day, zone)
        if border_ms != before_ms:  # a zone that goes over the date line leaves a day out
            yield border_ms
        before_ms = border_ms
        day = (
            (day + timedelta(31)).replace(day=1)
            if every == "month"
            else day + timedelta(7 if every == "week" else 1)
        )


def in_zone(time_ms: int, zone: tzinfo) -> datetime:
    """An instant as the zone's clocks show it, by its offset alone: two times of one ZoneInfo are
    compared and subtracted without regard to the change of clocks between them."""
    at = to_datetime(time_ms).astimezone(zone)
    return at.astimezone(timezone(at.utcoffset() or timedelta(0)))


def _midnight_ms(day: date, zone: tzinfo) -> int:
    """When the day begins: where clocks jump over midnight, the instant at which they do."""
    return to_ms(datetime(day.year, day.month, day.day, tzinfo=zone))
