"""Sums by day: how many changes of each day (UTC) a checkpoint counts, and their sum.

Rule 1: They are a part of the checkpoint, not an item of their own, and sum to its count and total:
else they would replicate before it or after it, and a chart would show half of a settle.
Rule 2: They take no write unit: the oldest days merge into their month, months into their year,
years into one bucket, until they fit the room that the checkpoint's first KB has left. Merged days
never come apart.
Rule 3: A bucket's name is a number of days since 1970, also beyond the years of `date`: the
calendar repeats after 400.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from operator import lt
from typing import NamedTuple

from ledger.core.entries import Entries, time_ms
from ledger.core.ranges import CHANGE_MAX
from ledger.core.tokens import TIME_MS_MAX

DAY_MS = 86_400_000
DAY, MONTH, YEAR, ALL = range(4)
_EPOCH = date(1970, 1, 1)
_CYCLE_DAYS = 146_097
_WISHED = {DAY: 31, MONTH: 24, YEAR: 5}
"""In which proportion buckets of each grain are kept, where there is no room for all."""


class Bucket(NamedTuple):
    """Number and sum of the changes of the day `day` (since 1970), or of the month, year or all
    that begins there.
    """

    day: int
    number: int
    total: int


Sums = dict[int, tuple[int, int]]
"""By the first day of a bucket: how many changes, and their sum."""


@dataclass(frozen=True, slots=True)
class Days:
    """Buckets in the order of time.

    froms: the days from which on each holds a day, a month, a year; before: all.
    """

    buckets: tuple[Bucket, ...] = ()
    froms: tuple[int, int, int] = (0, 0, 0)

    def __post_init__(self) -> None:
        days, (from_day, months, years) = [bucket.day for bucket in self.buckets], self.froms
        if not from_day >= months >= years or not all(map(lt, days, days[1:])):
            raise ValueError("the days are not in their order")
        coarse = [(day, self.grain(day)) for day in days if day < from_day]
        if any(
            _start(day, grain) != day
            for day, grain in [(from_day, MONTH), (months, YEAR), (years, YEAR), *coarse]
        ):
            raise ValueError("a bucket of days does not begin where its month or its year does")
        if any(number < 1 or abs(total) > number * CHANGE_MAX for _, number, total in self.buckets):
            raise ValueError("a bucket of days holds nothing, or a total that cannot come from it")

    @classmethod
    def of(
        cls, sums: Mapping[int, tuple[int, int]], froms: tuple[int, int, int] = (0, 0, 0)
    ) -> "Days":
        """Sums by day, or of finer buckets, in the buckets that these `froms` make."""
        empty = cls((), froms)
        found: Sums = {}
        for day, (number, total) in sums.items():
            _add(found, empty.start(day), number, total)
        return cls(tuple(Bucket(day, *found[day]) for day in sorted(found)), froms)

    @classmethod
    def read(cls, data: bytes) -> "Days":
        """The days in these bytes; raises ValueError if the bytes are no days."""
        numbers = _numbers(data)
        if len(numbers) < 3 or len(numbers) % 3:
            raise ValueError("days are not three numbers, then three for each bucket")
        day, buckets = 0, []
        for i in range(3, len(numbers), 3):
            gap, number, zigzag = numbers[i : i + 3]
            day += gap
            buckets.append(
                Bucket(day, number, zigzag >> 1 if not zigzag & 1 else -(zigzag + 1 >> 1))
            )
        if day > TIME_MS_MAX // DAY_MS:
            raise ValueError("a bucket of days is later than any token")
        return cls(tuple(buckets), (numbers[0], numbers[1], numbers[2]))

    @property
    def data(self) -> bytes:
        """The bytes in the table."""
        numbers, before = [*self.froms], 0
        for day, number, total in self.buckets:
            numbers += (day - before, number, total << 1 if total >= 0 else (-total << 1) - 1)
            before = day
        return b"".join(map(_varint, numbers))

    @property
    def sums(self) -> tuple[int, int]:
        """How many changes all buckets count, and their sum."""
        return sum([bucket.number for bucket in self.buckets]), sum(
            [bucket.total for bucket in self.buckets]
        )

    def grain(self, day: int) -> int:
        """How much the bucket with this day holds: DAY, MONTH, YEAR or ALL."""
        return next((grain for grain, since in enumerate(self.froms) if day >= since), ALL)

    def start(self, day: int) -> int:
        """The first day of the bucket with this day."""
        return _start(day, self.grain(day))

    def end(self, day: int) -> int:
        """The day after the bucket that begins at this one."""
        grain = self.grain(day)
        return self.froms[YEAR] if grain == ALL else _next(day, grain)

    def plus(self, entries: Entries) -> "Days":
        """The days with these entries, each in its day, or in the month, year or all into which
        its day has merged.
        """
        sums = {day: (number, total) for day, number, total in self.buckets}
        add_to(sums, entries)
        return self.of(sums, self.froms)

    def fitted(self, room: int) -> "Days":
        """The days, merged from the oldest on, until they take at most so many bytes."""
        days = self
        while len(days.data) > room and days.buckets[-1].day >= days.froms[YEAR]:
            days = days._coarser()
        return days

    def _coarser(self) -> "Days":
        """The days with the oldest buckets merged of the grain that has most of them."""
        there = Counter(self.grain(bucket.day) for bucket in self.buckets)
        grain = max(_WISHED, key=lambda grain: there[grain] / _WISHED[grain])
        oldest = next(bucket.day for bucket in self.buckets if self.grain(bucket.day) == grain)
        coarser = min(grain + 1, YEAR)
        end = _next(_start(oldest, coarser), coarser)
        days, months, years = (
            max(since, end) if unit <= grain else since for unit, since in enumerate(self.froms)
        )
        return self.of(
            {day: (number, total) for day, number, total in self.buckets}, (days, months, years)
        )


def add_to(sums: Sums, entries: Entries) -> None:
    """Add each entry to its day."""
    tokens, changes, done = entries.tokens, entries.changes, 0
    while done < len(tokens):
        day = time_ms(tokens[done]) // DAY_MS
        following = (day + 1) * DAY_MS
        end = (
            len(tokens)
            if following > TIME_MS_MAX
            else bisect_left(tokens, following.to_bytes(6, "big"), done)
        )
        _add(sums, day, end - done, sum(changes[done:end]))
        done = end


def _add(sums: Sums, day: int, number: int, total: int) -> None:
    known = sums.get(day, (0, 0))
    sums[day] = known[0] + number, known[1] + total


def ms_of(day: int) -> int:
    """When a day begins, in milliseconds; for a day after all tokens, the end of their time."""
    return min(day * DAY_MS, TIME_MS_MAX + 1)


@lru_cache(4_096)
def _start(day: int, grain: int) -> int:
    """The first day of the day, month, year or all with this day."""
    if grain in (DAY, ALL):
        return day if grain == DAY else 0
    cycle, rest = divmod(day, _CYCLE_DAYS)
    at = _EPOCH + timedelta(rest)
    first = at.replace(day=1) if grain == MONTH else at.replace(month=1, day=1)
    return cycle * _CYCLE_DAYS + (first - _EPOCH).days


def _next(first: int, grain: int) -> int:
    """The first day after the day, month or year that begins at this one."""
    return first + 1 if grain == DAY else _start(first + (31 if grain == MONTH else 366), grain)


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the highest bit of a byte says that another follows."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _numbers(data: bytes) -> list[int]:
    found, number, shift = [], 0, 0
    for byte in data:
        if byte < 0x80:
            found.append(number | byte << shift)
            number = shift = 0
        else:
            number |= (byte & 0x7F) << shift
            shift += 7
    if shift:
        raise ValueError("the last number of the days is cut off")
    return found
