"""`Keep`: how late changes of a period may come, and how long it is kept; `Term`: the times that
follow for one name.

Rule 1: A name is good for changes whose time is in its period by UTC, up to 14 hours earlier, or up
to 12 hours later: no zone of the world is further. So what counts needs no database of zones.
Rule 2: A period takes no change later than `late` after that, and no capture later than `keep`, by
name and clock alone. Else a late retry would find nothing where its first attempt has retired, and
count again.
Rule 3: Items retire 30 days after all of this, so a clock may be wrong by so much; no read looks at
a period then.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from ledger.core.checks import check_aware, plain_length, to_datetime, to_ms
from ledger.core.errors import (
    InvalidCounter,
    InvalidSettings,
    InvalidTime,
    PeriodOver,
    shown,
)
from ledger.core.period_name import MARK, YEAR_MAX, YEAR_MIN, Span, hour_text, parted
from ledger.core.ranges import CHANGE_MAX

EAST, WEST = timedelta(hours=14), timedelta(hours=12)
CLOCKS = timedelta(days=30)
KEEP_MAX = timedelta(days=36_525)
TERMS_MAX = 10_000
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """The rules for all periods of a prefix. Raises InvalidSettings.

    - late: how long after its end a period takes changes. Make it longer than any retry (a queue
      keeps messages 14 days).
    - keep: how long after its end you can read a period, and end its holds; then the table deletes
      its items. Both are whole seconds, `late` is at most `keep`, `keep` at most 36,525 days, and
      neither ever changes.
    - carry: how much of a period's unused ceiling the next one gets, at most; it may change.
    - anchor: for windows (Period(every=)) an aware datetime, a whole hour, at which one of them
      begins by the clock of its own zone. It never changes. A window that begins elsewhere is
      refused (InvalidCounter), so no two overlap. Without it windows may begin at any hour. Like a
      name, it is kept without its zone, as if its clock showed UTC.
    """

    late: timedelta
    keep: timedelta
    carry: int = 0
    anchor: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("late", "keep"):
            given: object = getattr(self, name)
            span = plain_length(given)
            if span is None or span < timedelta(0) or span % SECOND:
                raise InvalidSettings(
                    f"{name}={shown(given)} is not a timedelta of whole seconds, 0 or more."
                )
            object.__setattr__(self, name, span)
        if self.late > self.keep:
            raise InvalidSettings(
                f"late ({self.late}) is longer than keep ({self.keep}): a period is kept at least "
                "as long as changes of it may come."
            )
        if self.keep > KEEP_MAX:
            raise InvalidSettings(f"keep ({self.keep}) is longer than {KEEP_MAX.days:,} days.")
        if type(self.carry) is not int or not 0 <= self.carry <= CHANGE_MAX:
            raise InvalidSettings(f"carry={shown(self.carry)} is not an int from 0 to 10**18.")
        if self.anchor is not None:
            object.__setattr__(self, "anchor", _calendar_of(self.anchor))


def _calendar_of(anchor: datetime) -> datetime:
    """What the clock of the anchor's own zone shows, as UTC. Raises InvalidSettings."""
    try:
        calendar = check_aware("anchor", anchor).replace(tzinfo=UTC)
    except InvalidTime as error:
        raise InvalidSettings(error.why) from None
    is_whole = calendar.replace(minute=0, second=0, microsecond=0) == calendar
    if not is_whole or not YEAR_MIN <= calendar.year <= YEAR_MAX:
        raise InvalidSettings(
            f"anchor={shown(anchor, 80)} is no whole hour of the years {YEAR_MIN} to {YEAR_MAX}: "
            "the names of windows have room for no other time."
        )
    return calendar


class Term(NamedTuple):
    """A name with a period, and the Keep of its prefix. Times are milliseconds since 1970."""

    base: str
    span: Span
    keep: Keep

    @property
    def resets_at(self) -> datetime:
        """When the next period begins, by UTC."""
        return self.span.end.replace(tzinfo=UTC)

    @property
    def name(self) -> str:
        return f"{self.base}{MARK}{self.span.text}"

    @property
    def before(self) -> Term:
        """The period before."""
        return self._replace(span=self.span.before)

    @property
    def first_ms(self) -> int:
        """The first time that the name is good for, in whatever zone."""
        return to_ms(self.span.start.replace(tzinfo=UTC) - EAST)

    @property
    def end_ms(self) -> int:
        """When the period is over in every zone."""
        return to_ms(self.resets_at + WEST)

    @property
    def closes_ms(self) -> int:
        """From when on the period takes no changes."""
        return self.end_ms + self.keep.late // timedelta(milliseconds=1)

    @property
    def kept_until_ms(self) -> int:
        """From when on it cannot be read."""
        return self.end_ms + self.keep.keep // timedelta(milliseconds=1)

    @property
    def retires_s(self) -> int:
        """The second since 1970 from which on the table may delete its items, in any order."""
        return -(-self.kept_until_ms // 1_000) + CLOCKS // SECOND

    def is_good_for(self, time_ms: int) -> bool:
        return self.first_ms <= time_ms < self.end_ms

    def check_window(self) -> None:
        """Raises InvalidCounter for a window that begins where none does by the anchor."""
        anchor = self.keep.anchor
        if anchor is not None and not self.span.fits(anchor.replace(tzinfo=None)):
            raise InvalidCounter(
                f"{self.name} begins where no window of its prefix begins: one begins at "
                f"{hour_text(anchor)}, the others every {self.span.every} {self.span.unit}s before "
                "and after. Nothing was written. Give Period the anchor that periods (Keep) has "
                "for this prefix."
            )

    def check_takes(self, now_ms: int) -> None:
        """Raises PeriodOver where the period takes no more changes."""
        if now_ms >= self.closes_ms:
            raise self._over(
                self.closes_ms, "takes no more changes, so that its value stays what it was"
            )

    def check_kept(self, now_ms: int) -> None:
        """Raises PeriodOver where the period can no longer be read."""
        if now_ms >= self.kept_until_ms:
            raise self._over(self.kept_until_ms, "is kept no longer, and the table deletes it")

    def _over(self, since_ms: int, why: str) -> PeriodOver:
        since = to_datetime(since_ms)
        over = (
            f"{self.name}: since {since:%Y-%m-%dT%H:%MZ} the period {why}. Nothing was "
            "written. No retry helps."
        )
        return PeriodOver(over, counter=self.name, since=since)


@lru_cache(TERMS_MAX)
def term_of(counter: str, keep: Keep) -> Term | None:
    """The term of a counter; None for a base."""
    base, span = parted(counter)
    # Rule 4: a base, a name below such a prefix without a period, decides nothing; so a period is
    # no base.
    return None if span is None else Term(base, span, keep)
