"""`Period`: the period of a moment in a zone's calendar, and its name. Nothing that counts depends on it.

Rule 1: Choose a name once, with `at`, where you make a change: two machines may have different databases of zones.
Source of the zones: the machine's database, or the package tzdata (https://docs.python.org/3/library/zoneinfo.html).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from ledger.checks import check_aware, check_counter, check_time, plain_text
from ledger.errors import InvalidCounter, InvalidInput, InvalidTime, shown
from ledger.periods.name import ANCHOR_MAX, MARK, UNITS, YEAR_MAX, YEAR_MIN, Span, around, is_dated, parted

NAMES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Period:
    """Periods of a calendar. Raises InvalidInput.

    unit: "year", "month", "week" (from Monday on, ISO 8601), "day" or "hour". zone: an IANA name such as Europe/Paris.
    anchor: the day from 1 to 28 on which a "month" begins.
    """

    unit: str
    zone: str = "UTC"
    anchor: int = 1

    def __post_init__(self) -> None:
        unit = plain_text(self.unit)
        if unit not in UNITS:
            raise InvalidInput(f"unit={shown(self.unit)} is none of {', '.join(UNITS)}.")
        object.__setattr__(self, "unit", unit)
        if type(self.anchor) is not int or not 1 <= self.anchor <= (ANCHOR_MAX if self.unit == "month" else 1):
            day = f"the day from 1 to {ANCHOR_MAX} on which a month begins, and of months alone"
            raise InvalidInput(f"anchor={shown(self.anchor)} is not {day}.")
        zone_of(self.zone)
        object.__setattr__(self, "zone", plain_text(self.zone))

    def name(self, base: str, at: datetime) -> str:
        """The counter of the period of `at`: "llm:key:k1@2026-11". Raises InvalidTime and InvalidCounter."""
        return self._named(base, self._around("at", at))

    def start(self, name: str) -> datetime:
        """The first moment of a name's period, in the zone. Raises InvalidCounter for a period of another form."""
        return self._moment(self._span(name).start)

    def end(self, name: str) -> datetime:
        """The first moment of the next period, in the zone. Raises InvalidCounter for a period of another form."""
        return self._moment(self._span(name).end)

    def names(self, base: str, since: datetime, until: datetime) -> list[str]:
        """The counters of all periods from `since` (included) to `until` (excluded): at most 10,000, for
        `Reader.values`. Raises InvalidTime, InvalidCounter and InvalidInput."""
        first, last_ms = self._around("since", since), check_time("until", until)
        if check_time("since", since) > last_ms:
            raise InvalidInput(f"since={shown(since, 80)} is after until={shown(until, 80)}.")
        found: list[str] = []
        for span in self._from(first):
            if check_time("start", self._moment(span.start)) >= last_ms:
                break
            if len(found) == NAMES_MAX:
                raise InvalidInput(
                    f"From since to until are more than {NAMES_MAX:,} periods. Nothing was written. Name a shorter "
                    "time."
                )
            found.append(self._named(base, span))
        return found

    def last(self, base: str, number: int, at: datetime) -> list[str]:
        """The counters of that many periods, 1 to 10,000, the last of which is the one of `at`. Raises as `names`."""
        if type(number) is not int or not 1 <= number <= NAMES_MAX:
            raise InvalidInput(f"{shown(number)} is no number of periods from 1 to {NAMES_MAX:,}.")
        spans = [self._around("at", at)]
        while len(spans) < number and spans[-1].start.year > YEAR_MIN:
            spans.append(spans[-1].before)
        return [self._named(base, span) for span in reversed(spans)]

    def _from(self, span: Span) -> Iterator[Span]:
        while span.start.year <= YEAR_MAX:
            yield span
            span = span.next

    def _named(self, base: str, span: Span) -> str:
        return check_counter(f"{check_base(base)}{MARK}{span.text}")

    def _around(self, name: str, at: datetime) -> Span:
        moment = check_aware(name, at)
        try:
            span = around(self.unit, self.anchor, moment.astimezone(zone_of(self.zone)).replace(tzinfo=None))
            if not YEAR_MIN <= span.start.year <= YEAR_MAX:
                raise ValueError
        except (ValueError, OverflowError):
            why = f"{name}={shown(at, 80)} is in no period of the years {YEAR_MIN} to {YEAR_MAX}."
            raise InvalidTime(why) from None
        return span

    def _span(self, name: str) -> Span:
        span = parted(check_counter(name))[1]
        if span is None or (span.unit, span.anchor) != (self.unit, self.anchor):
            example = Span(self.unit, self.anchor, datetime(2026, 11, self.anchor)).text
            raise InvalidCounter(f"{name} does not end with a period such as {MARK}{example}.")
        return span

    def _moment(self, calendar: datetime) -> datetime:
        return calendar.replace(tzinfo=zone_of(self.zone))


def check_base(base: str) -> str:
    """`base` as plain text. Raises InvalidCounter."""
    base = check_counter(base)
    if is_dated(base):
        raise InvalidCounter(
            f"{base} is no base: a base has no {MARK} before four digits, because a period begins so. Nothing was "
            "written. Give the name without its period."
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
        f"This machine has no time zone {shown(zone)}: zone is an IANA name such as Europe/Paris. Nothing was written. "
        "On a system without time zones, install the package tzdata."
    )
