"""The period at the end of a counter's name: `llm:key:k1@2026-11` is of November 2026.

Rule 1: A name has no zone: this file reads its calendar as UTC's, and `Period` alone reads it as a
zone's.
Rule 2: A text is a period only in the one spelling that this file writes, so no month has two
names. A window's has its first hour or day and its length: 2026-11-28T05+5h.
Rule 3: A base, and a prefix of limits or periods, has no MARK before four digits. So a setting for
the name of a period, such as shards, holds for no other base, and no period has a limit by the
settings that its base has not.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

UNITS = ("year", "month", "week", "day", "hour")
MARK = "@"
ANCHOR_MAX = 28
"""The last day that every month has."""

EVERY_MAX: Mapping[str, int] = {"hour": 8_760, "day": 365}
"""How many hours, or days, a window has at most: a year."""

EPOCH = datetime(1970, 1, 1)

YEAR_MIN, YEAR_MAX = 1970, 9_998

_SPELT = re.compile(
    r"(\d{4})(?:-W(\d\d)|-(\d\d)(?:-(\d\d)(T\d\d|M)?(?:\+(\d{1,4})[dh])?)?)?", re.ASCII
)
_DATED = re.compile(rf"{MARK}\d{{4}}", re.ASCII)
_TEXTS: Mapping[str, str] = {
    "year": "%Y",
    "month": "%Y-%m",
    "week": "%G-W%V",
    "day": "%Y-%m-%d",
    "hour": "%Y-%m-%dT%H",
}
_LENGTHS: Mapping[str, timedelta] = {"hour": timedelta(hours=1), "day": timedelta(days=1)}


class Span(NamedTuple):
    """A period: its unit, the day of the month on which it begins, and its first moment, by a
    calendar alone. every: of a window, how many hours or days it has.
    """

    unit: str
    anchor: int
    start: datetime
    every: int = 1

    @property
    def text(self) -> str:
        if self.anchor > 1:
            return f"{self.start:%Y-%m-%d}M"
        text = self.start.strftime(_TEXTS[self.unit])
        return text if self.every == 1 else f"{text}+{self.every}{self.unit[0]}"

    @property
    def is_of_years(self) -> bool:
        """Whether it is of the years 1970 to 9998."""
        # a window that is a year long might end later than any date of Python
        last = self.start if self.every == 1 else self.end
        return YEAR_MIN <= self.start.year <= YEAR_MAX and last.year <= YEAR_MAX

    @property
    def end(self) -> datetime:
        """The first moment of the next one."""
        return self.next.start

    @property
    def next(self) -> "Span":
        if self.every > 1:
            return self._replace(start=self.start + self._length)
        return self._replace(start=_NEXT[self.unit](self.start))

    @property
    def before(self) -> "Span":
        if self.every > 1:
            return self._replace(start=self.start - self._length)
        return around(self.unit, self.anchor, self.start - timedelta(microseconds=1))

    def fits(self, first: datetime) -> bool:
        """Whether it is one of the windows of which one begins at `first`. What is no window has
        no anchor, so it fits every one.
        """
        return self.every == 1 or not (self.start - first) % self._length

    @property
    def _length(self) -> timedelta:
        """Of a window."""
        return self.every * _LENGTHS[self.unit]


def around(unit: str, anchor: int, moment: datetime) -> Span:
    """The period of a moment of a calendar.

    Raises ValueError and OverflowError beyond the calendar's years.
    """
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "hour":
            start = moment.replace(minute=0, second=0, microsecond=0)
        case "day":
            start = day
        case "week":
            start = day - timedelta(days=day.weekday())
        case "month":
            start = (day - timedelta(days=anchor - 1)).replace(day=1) + timedelta(days=anchor - 1)
        case _:
            start = day.replace(month=1, day=1)
    return Span(unit, anchor, start)


def window_around(unit: str, every: int, first: datetime, moment: datetime) -> Span:
    """The window of a moment of a calendar. first: where one of the windows begins.

    Raises OverflowError beyond the calendar's years.
    """
    return Span(unit, 1, moment - (moment - first) % (every * _LENGTHS[unit]), every)


def span_of(text: str) -> Span | None:
    """The period that a text spells; None when it is none of the years 1970 to 9998."""
    match = _SPELT.fullmatch(text)
    if match is None or not YEAR_MIN <= int(match[1]) <= YEAR_MAX:
        return None
    year, (week, month, day, rest) = int(match[1]), (match[group] or "" for group in range(2, 6))
    every = int(match[6] or 1)
    try:
        if week:
            span = Span("week", 1, datetime.fromisocalendar(year, int(week), 1))
        else:
            start = datetime(year, int(month or 1), int(day or 1), int(rest[1:] or 0))
            unit = (
                "hour"
                if rest[:1] == "T"
                else "month"
                if month and (not day or rest)
                else "day"
                if day
                else "year"
            )
            span = Span(unit, start.day if rest == "M" else 1, start, every)
            if every > EVERY_MAX.get(unit, 1) or not (every and span.is_of_years):
                return None
    except ValueError:  # the 31st of February, the 53rd week of a year with 52, the hour 24
        return None
    return span if span.text == text and span.anchor <= ANCHOR_MAX else None


def hour_text(hour: datetime) -> str:
    """A whole hour as names have it: 2026-11-28T05."""
    return Span("hour", 1, hour).text


def hour_of(text: str) -> datetime:
    """The hour, as UTC, that a text spells as names do. Raises ValueError."""
    span = span_of(text)
    if span is None or (span.unit, span.every) != ("hour", 1):
        raise ValueError(f"{text} is no hour such as 2026-11-28T05")
    return span.start.replace(tzinfo=UTC)


def is_dated(text: str) -> bool:
    """Whether a text has the beginning of a period's text in it."""
    return _DATED.search(text) is not None


def parted(counter: str) -> tuple[str, Span | None]:
    """The base of a name, and the period at its end; the whole name and None where it has no
    period.
    """
    base, mark, text = counter.rpartition(MARK)
    span = span_of(text) if mark and base else None
    return (base, span) if span is not None else (counter, None)


def _next_month(start: datetime) -> datetime:
    return start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)


_NEXT: Mapping[str, Callable[[datetime], datetime]] = {
    "hour": lambda start: start + timedelta(hours=1),
    "day": lambda start: start + timedelta(days=1),
    "week": lambda start: start + timedelta(weeks=1),
    "month": _next_month,
    "year": lambda start: start.replace(year=start.year + 1),
}
