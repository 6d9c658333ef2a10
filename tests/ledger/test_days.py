"""The sums by day of a checkpoint: what they hold, how they become coarser, and what is taken
for none.
"""

from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.commit import with_days
from ledger.core import items, tokens
from ledger.core.cost import WRITE_UNIT_BYTES, item_bytes
from ledger.core.days import DAY_MS, Bucket, Days, Sums, add_to
from ledger.core.entries import Entries, packed
from ledger.core.errors import DamagedItem
from ledger.core.ranges import CHANGE_MAX, COUNT_MAX, VERSION_MAX
from ledger.core.values import Checkpoint, Lane
from tests.strategies import changes, effort
from tests.world import LANE, delta, folded, reader, refused

LAST_DAY = tokens.TIME_MS_MAX // DAY_MS
DAYS = st.integers(20_000, 20_100) | st.integers(0, 40_000) | st.just(LAST_DAY)


def entries_of(*found: tuple[int, int]) -> Entries:
    """(day, change) of each, at the last millisecond of its day as far as a token can say it."""
    made = {
        tokens.make(
            min((day + 1) * DAY_MS - 1, tokens.TIME_MS_MAX), number.to_bytes(10, "big")
        ): change
        for number, (day, change) in enumerate(found)
    }
    return Entries.of(packed(token, made[token]) for token in sorted(made))


def day(year: int, month: int, of_month: int = 1) -> int:
    return (date(year, month, of_month) - date(1970, 1, 1)).days


@given(st.lists(st.lists(st.tuples(DAYS, changes), max_size=40), max_size=8), st.integers(40, 700))
@effort(0.5)
def test_days_fit_their_room_and_are_the_recount_made_coarse(
    commits: list[list[tuple[int, int]]], room: int
) -> None:
    days, every = Days(), Sums()
    for some in commits:
        entries = entries_of(*some)
        days = days.plus(entries).fitted(room)
        add_to(every, entries)
    assert len(days.data) <= room
    assert Days.read(days.data) == days == Days.of(every, days.froms)
    assert days.sums == (
        sum(map(len, commits)),
        sum(change for some in commits for _, change in some),
    )
    for before, after in zip(days.buckets, days.buckets[1:], strict=False):
        assert before.day < days.end(before.day) <= after.day


def test_days_merge_oldest_first_into_months_then_years() -> None:
    days = Days()
    for number in range(day(2023, 1, 5), day(2026, 3, 20)):
        days = days.plus(entries_of((number, 10**9))).fitted(300)
    months, years = days.froms[0], days.froms[1]
    assert day(2026, 1) <= months <= day(2026, 3)
    assert years == day(2025, 1)
    assert Bucket(day(2025, 2), 28, 28 * 10**9) in days.buckets
    assert Bucket(day(2024, 1), 366, 366 * 10**9) in days.buckets
    assert days.buckets[-1] == Bucket(day(2026, 3, 19), 1, 10**9)
    stray = days.plus(entries_of((day(2025, 2, 14), 5)))
    assert Bucket(day(2025, 2), 29, 28 * 10**9 + 5) in stray.buckets


@pytest.mark.parametrize(
    "year", [1970, 1972, 2000, 2369, 2370, 2371, 2400, 2769, 2770, 2900, 4000, 9996, 9998]
)
def test_a_far_day_is_in_the_month_and_the_year_of_its_calendar(year: int) -> None:
    """The calendar repeats after 400 years, and so do the days since 1970 that are computed from
    it.
    """
    in_months = Days((), (day(year + 1, 1), day(year, 1), day(year, 1)))
    in_years = Days((), (day(year + 1, 1), day(year + 1, 1), day(year, 1)))
    for number in range(day(year, 1), day(year + 1, 1)):
        at = date(1970, 1, 1) + timedelta(number)
        month = at.month
        assert in_months.start(number) == day(year, month)
        assert in_months.end(day(year, month)) == (
            day(year, month + 1) if month < 12 else day(year + 1, 1)
        )
        assert in_years.start(number) == day(year, 1)
    assert in_years.end(day(year, 1)) == day(year + 1, 1)


def test_days_merge_by_the_byte() -> None:
    days = Days()
    for number in range(20_000, 20_100):
        days = days.plus(entries_of((number, 10**6 + number)))
    while len(days.buckets) > 1:
        room = len(days.data)
        assert days.fitted(room) is days
        days = days.fitted(room - 1)
        assert len(days.data) < room
    lane, last = Lane("ap-southeast-1", 999, "c"), tokens.last_of(tokens.TIME_MS_MAX)
    bare = Checkpoint(lane, 5, 1, last, 7, last, 0)
    full = {**items.checkpoint_item(bare), "days": {"B": bytes(items.room_for_days(bare))}}
    assert item_bytes(full) == WRITE_UNIT_BYTES - items.FREE_BYTES


@pytest.mark.parametrize("counter", ["c", "~" * 256])
def test_a_checkpoint_with_days_costs_what_one_without_does(counter: str) -> None:
    last = tokens.last_of(tokens.TIME_MS_MAX)
    lane, days = Lane("ap-southeast-1", 999, counter), Days()
    for number in range(20_000, 20_400):
        days = days.plus(entries_of(*[(number, -CHANGE_MAX + 1)] * 3))
    count, total = days.sums
    bare = Checkpoint(lane, total, count, last, VERSION_MAX, last, tokens.TIME_MS_MAX)
    made = with_days(bare, days)
    size = item_bytes(items.checkpoint_item(made))
    assert 600 < size <= WRITE_UNIT_BYTES - 60
    assert items.checkpoint_of(lane, items.checkpoint_item(made)) == made


def test_the_longest_numbers_there_are_fit_as_one_bucket() -> None:
    total = COUNT_MAX * CHANGE_MAX
    lane, last = Lane("ap-southeast-1", 999, "~" * 256), tokens.last_of(tokens.TIME_MS_MAX)
    bare = Checkpoint(lane, total, COUNT_MAX, last, VERSION_MAX, last, -tokens.TIME_MS_MAX)
    made = with_days(bare, Days((Bucket(LAST_DAY, COUNT_MAX, total),)))
    assert item_bytes(items.checkpoint_item(made)) <= WRITE_UNIT_BYTES


def spelled(*numbers: int) -> bytes:
    """Such bytes, made as docs/data-model.md says."""
    found = bytearray()
    for number in numbers:
        groups = [number >> shift & 0x7F for shift in range(0, max(1, number.bit_length()), 7)]
        found += bytes((*(group | 0x80 for group in groups[:-1]), groups[-1]))
    return bytes(found)


RIGHT = Days((Bucket(day(1970, 1, 1), 2, 20),))
WRONG: dict[str, bytes] = {
    "nothing": b"",
    "a bucket that is cut off": RIGHT.data[:-1],
    "a number that is cut off": RIGHT.data + b"\x80",
    "another sum": spelled(0, 0, 0, 0, 2, 48),
    "another count": spelled(0, 0, 0, 0, 3, 40),
    "a bucket without changes": spelled(0, 0, 0, 0, 2, 40, 1, 0, 0),
    "a day twice": spelled(0, 0, 0, 0, 1, 8, 0, 1, 32),
    "a total too large for its count": spelled(
        0, 0, 0, 0, 1, 4 * CHANGE_MAX, 1, 1, 4 * CHANGE_MAX - 41
    ),
    "days that begin within a month": spelled(40, 0, 0, 0, 2, 40),
    "months that begin within a year": spelled(59, 59, 0, 0, 2, 40),
    "a month that begins within one": spelled(59, 0, 0, 3, 2, 40),
    "months that begin after days": spelled(0, 365, 0, 0, 2, 40),
    "years that begin after months": spelled(365, 0, 365, 0, 2, 40),
    "a day after all tokens": spelled(0, 0, 0, LAST_DAY + 1, 2, 40),
}


def test_days_are_spelled_as_the_data_model_says() -> None:
    made = Days(
        (Bucket(day(2024, 1), 300, -5), Bucket(day(2025, 3, 2), 1, 7)),
        (day(2025, 2), day(2025, 1), 0),
    )
    gap = day(2025, 3, 2) - day(2024, 1)
    assert made.data == spelled(day(2025, 2), day(2025, 1), 0, day(2024, 1), 300, 9, gap, 1, 14)


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_days_that_are_not_as_described_are_a_damaged_item(wrong: bytes) -> None:
    home, _ = folded(1, 2)
    key = items.checkpoint_key(LANE)
    assert home.items[key]["days"] == {"B": RIGHT.data}
    home.alter(key, days={"B": wrong})
    with refused(home, DamagedItem, "days"):
        reader(home).read(delta(1).lane.counter)


@pytest.mark.parametrize("other", [{"S": "AAAA"}, {"N": "7"}, {}])
def test_days_of_another_type_are_a_damaged_item(other: dict[str, Any]) -> None:
    home, _ = folded(1, 2)
    home.alter(items.checkpoint_key(LANE), days=other)
    with refused(home, DamagedItem, "days is missing or not binary"):
        reader(home).read(delta(1).lane.counter)
