"""`Period`: the period of a moment in a zone's calendar, and its name. Nothing that counts depends
on it. A period of several hours or days is called a window.

Rule 1: Choose a name once, with `at`, where you make a change: two machines may have different
databases of zones.
Source of the zones: the machine's database, or the package tzdata
(https://docs.python.org/3/library/zoneinfo.html).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from ledger.core.checks import check_aware, check_counter, plain_text
from ledger.core.errors import InvalidCounter, InvalidInput, InvalidTime, shown
from ledger.core.period_name import (
    ANCHOR_MAX,
    EPOCH,
    EVERY_MAX,
    MARK,
    UNITS,
    YEAR_MAX,
    YEAR_MIN,
    Span,
    around,
    is_dated,
    parted,
    window_around,
)

NAMES_MAX = 10_000
NUMBERED = re.compile(r"([1-9][0-9]{0,3})([hd])")
"""How a person names windows of so many hours, or days."""


@dataclass(frozen=True, slots=True)
class Period:
    """Periods of a calendar. Raises InvalidInput.

    - unit: "year", "month", "week" (from Monday on, ISO 8601), "day" or "hour".
    - zone: an IANA name such as Europe/Paris.
    - every: how many hours or days a *window* has: 1 to 8,760 hours, 1 to 365 days, as the zone's
      clock shows them.
    - anchor: for "month" the day from 1 to 28 on which each month begins. For windows a datetime at
      which one of them begins; the others follow at that distance before and after it. It is a
      whole hour of the zone's clock, for days a midnight. Without it one begins at 1970-01-01T00 by
      that clock.
    """

    unit: str
    zone: str = "UTC"
    anchor: int | datetime = 1
    every: int = 1

    def __post_init__(self) -> None:
        unit = plain_text(self.unit)
        if unit not in UNITS:
            raise InvalidInput(f"unit={shown(self.unit)} is none of {', '.join(UNITS)}.")
        object.__setattr__(self, "unit", unit)
        zone_of(self.zone)
        object.__setattr__(self, "zone", plain_text(self.zone))
        self._check_every()
        if isinstance(self.anchor, datetime) and unit in EVERY_MAX:
            self._check_anchor_of_windows(self.anchor)
            return
        day_max = ANCHOR_MAX if unit == "month" else 1
        if type(self.anchor) is not int or not 1 <= self.anchor <= day_max:
            if self.every > 1:
                raise InvalidInput(
                    f"anchor={shown(self.anchor)} is not a datetime with a time zone, at which one "
                    "of the windows begins. Nothing was written."
                )
            raise InvalidInput(
                f"anchor={shown(self.anchor)} is not the day from 1 to {ANCHOR_MAX} on which a "
                "month begins; such an anchor is a setting of months alone."
            )

    def _check_every(self) -> None:
        most = EVERY_MAX.get(self.unit, 1)
        if type(self.every) is int and 1 <= self.every <= most:
            return
        if type(self.every) is int and self.unit not in EVERY_MAX:
            raise InvalidInput(
                f"every={shown(self.every)} is for windows of hours and days alone, not of a "
                f"{self.unit}. "
                'Nothing was written. Two weeks are Period("day", every=14, anchor=a Monday).'
            )
        raise InvalidInput(
            f"every={shown(self.every)} is not an int from 1 to {most:,}, how many {self.unit}s a "
            "period has. Nothing was written."
        )

    def _check_anchor_of_windows(self, anchor: datetime) -> None:
        if self.every == 1:
            raise InvalidInput(
                f"anchor={anchor.isoformat()} without every: only windows of several hours or days "
                "begin at an anchor. Nothing was written. Give every, such as every=5, or no "
                "anchor."
            )
        try:
            object.__setattr__(self, "anchor", self._anchor_that_is_shown(anchor))
            first = self._first()
        except OverflowError:
            raise InvalidInput(
                f"anchor={anchor.isoformat()} is beyond the years that a clock in {self.zone} "
                f"shows. Nothing was written. Give one of the years {YEAR_MIN} to {YEAR_MAX}."
            ) from None
        if window_around(self.unit, 1, EPOCH, first).start != first:
            begins = "midnight" if self.unit == "day" else "whole hour"
            raise InvalidInput(
                f"anchor={anchor.isoformat()} is {first.isoformat()} in {self.zone}, no {begins}. "
                f"Nothing was written. Give the {begins} at which one of the windows begins there."
            )

    def _anchor_that_is_shown(self, anchor: datetime) -> datetime:
        """The anchor; where it is of this zone, whose clock jumps over it, the first window after
        it that begins at a moment which the clock shows: Keep has the anchor by its calendar, too.

        Raises InvalidTime, and OverflowError beyond the calendar's years.
        """
        moment, zone = check_aware("anchor", anchor), zone_of(self.zone)
        if anchor.tzinfo is zone:
            calendar = moment.replace(tzinfo=None)
            span = window_around(self.unit, self.every, calendar, calendar)
            while self._shown(moment) != span.start:
                span = span.next
                moment = check_aware("anchor", span.start.replace(tzinfo=zone))
        return moment

    def _first(self) -> datetime:
        """What the zone's clock shows when one of the windows begins."""
        return self._shown(self.anchor) if isinstance(self.anchor, datetime) else EPOCH

    def name(self, base: str, at: datetime) -> str:
        """The counter of the period of `at`: "llm:key:k1@2026-11".

        Raises InvalidTime and InvalidCounter.
        """
        return self._named(base, self._around("at", at))

    def start(self, name: str) -> datetime:
        """The first moment of a name's period, by the zone's clock then. Raises InvalidCounter for
        a period of another form."""
        return self._start(self._span(name))

    def end(self, name: str) -> datetime:
        """The end of a name's period, by the zone's clock then.

        Raises InvalidCounter for a period of another form.
        """
        return self._end(self._span(name))

    def names(self, base: str, since: datetime, until: datetime) -> list[str]:
        """The counters of all periods from `since` (included) to `until` (excluded): at most
        10,000, for `Reader.values`. A period that no clock of the zone shows is left out; where
        clocks go back, one hour's name is good for two, and `start` and `end` say which.

        Raises InvalidTime, InvalidCounter and InvalidInput.
        """
        first = self._around("since", since)
        since_at, until_at = check_aware("since", since), check_aware("until", until)
        if since_at > until_at:
            raise InvalidInput(f"since={shown(since, 80)} is after until={shown(until, 80)}.")
        # clocks went back
        while first.start.year > YEAR_MIN and self._end(first.before) > since_at:
            first = first.before
        found: list[str] = []
        for span in self._from(first):
            if self._start(span) >= until_at:
                break
            if len(found) == NAMES_MAX:
                raise InvalidInput(
                    f"From since to until are more than {NAMES_MAX:,} periods. Nothing was "
                    "written. Name a shorter time."
                )
            found.append(self._named(base, span))
        return found

    def last(self, base: str, number: int, at: datetime) -> list[str]:
        """The counters of so many periods in a row, 1 to 10,000; the last one is that of `at`.

        Raises as `names`.
        """
        if type(number) is not int or not 1 <= number <= NAMES_MAX:
            raise InvalidInput(f"{shown(number)} is no number of periods from 1 to {NAMES_MAX:,}.")
        span = self._around("at", at)
        spans = [span]
        while len(spans) < number and span.start.year > YEAR_MIN:
            span = span.before
            if not self._is_left_out(span):
                spans.append(span)
        return [self._named(base, span) for span in reversed(spans)]

    def _from(self, span: Span) -> Iterator[Span]:
        while span.is_of_years:
            if not self._is_left_out(span):
                yield span
            span = span.next

    def _named(self, base: str, span: Span) -> str:
        return check_counter(f"{check_base(base)}{MARK}{span.text}")

    def _around(self, name: str, at: datetime) -> Span:
        moment = check_aware(name, at)
        try:
            span = self._spanning(self._shown(moment))
            if not span.is_of_years:
                raise ValueError
        except (ValueError, OverflowError):
            why = f"{name}={shown(at, 80)} is in no period of the years {YEAR_MIN} to {YEAR_MAX}."
            raise InvalidTime(why) from None
        return span

    def _spanning(self, calendar: datetime) -> Span:
        """The period of what the zone's clock shows.

        Raises ValueError and OverflowError beyond the calendar's years.
        """
        if self.every > 1 or isinstance(self.anchor, datetime):
            return window_around(self.unit, self.every, self._first(), calendar)
        return around(self.unit, self.anchor, calendar)

    def _span(self, name: str) -> Span:
        span = parted(check_counter(name))[1]
        # one of this form is the period of its own first moment
        if span is None or span != self._spanning(span.start):
            example = self._spanning(datetime(2026, 11, ANCHOR_MAX)).text
            raise InvalidCounter(f"{name} does not end with a period such as {MARK}{example}.")
        return span

    def _start(self, span: Span) -> datetime:
        """The first moment that the zone's clock has in the span."""
        return self._crossings(span.start)[0]

    def _end(self, span: Span) -> datetime:
        """The end of the last moment that the zone's clock has in the span: it may have left the
        span before.
        """
        first, last = self._crossings(span.end)
        just_before = self._shown(last - timedelta(microseconds=1))
        return last if last > first and just_before < span.end else first

    def _is_left_out(self, span: Span) -> bool:
        """Whether the zone's clock jumps over the whole span."""
        return self._start(span) == self._end(span)

    def _crossings(self, calendar: datetime) -> tuple[datetime, datetime]:
        """The first and the last moment at which the zone's clock shows this; where it jumps over
        it, that moment.

        A moment has a fixed offset, as two times of one ZoneInfo are compared without regard to a
        change of clocks.
        """
        zone = zone_of(self.zone)
        first, last = (calendar.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        # by the offset after the jump, and by that before it: the jump is between them
        if last < first:
            seconds = range(int((first - last).total_seconds()))
            jump = bisect_left(
                seconds, calendar, key=lambda s: self._shown(last + timedelta(seconds=s))
            )
            first = last = last + timedelta(seconds=jump)
        return check_aware("first", first.astimezone(zone)), check_aware(
            "last", last.astimezone(zone)
        )

    def _shown(self, moment: datetime) -> datetime:
        """What the zone's clock shows."""
        return moment.astimezone(zone_of(self.zone)).replace(tzinfo=None)


def check_base(base: str) -> str:
    """`base` as plain text. Raises InvalidCounter."""
    base = check_counter(base)
    if is_dated(base):
        raise InvalidCounter(
            f"{base} is no base: a base has no {MARK} before four digits, which begin a period. "
            "Nothing was written. Give the name without its period."
        )
    return base


def zone_of(zone: object) -> tzinfo:
    """The zone of an IANA name, UTC for None. Raises InvalidInput."""
    name = plain_text(zone)
    if zone is None or name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        if name:
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise InvalidInput(
        f"This machine has no time zone {shown(zone)}: zone is an IANA name such as Europe/Paris. "
        "Nothing was written. On a system without time zones, install the package tzdata."
    )
