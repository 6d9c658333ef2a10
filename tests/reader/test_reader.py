"""`Reader` as its users see it: balances across lanes, bad input, slow tables."""

from datetime import UTC, datetime

import pytest

from ledger import items
from ledger.checks import to_datetime
from ledger.errors import ReadTooSlow, Unavailable
from ledger.requests import GetMany, Query, Together
from ledger.values import Delta, Lane
from reader import Balance
from tests.calls import passed
from tests.world import (
    COUNTER,
    LANE,
    LATENESS_MS,
    NOW_MS,
    READ_MS,
    A,
    B,
    Region,
    compactor,
    delta,
    reader,
    token,
    two_regions,
)


def test_a_balance_says_value_count_pending_and_the_parts_of_each_region() -> None:
    home, away = two_regions()
    home.put(delta(1), delta(2))
    compactor(home, away).compact(COUNTER)
    home.put(delta(3), delta(4, Lane(B, 0, COUNTER)))
    assert reader(home).read(COUNTER) == Balance(
        value=4**1 + 4**2 + 4**3 + 4**4,
        count=4,
        as_of=datetime.fromtimestamp(NOW_MS / 1000, UTC),
        pending=2,
        by_region={A: 4**1 + 4**2 + 4**3, B: 4**4},
        cached=False,
        oldest_pending=datetime.fromtimestamp(3, UTC),
    )


def test_values_of_many_counters_are_read_together() -> None:
    home = Region()
    names = [f"stock:{n}" for n in range(150)]
    home.put(*(delta(1, Lane(A, 0, name)) for name in names[:100]))
    assert reader(home).values([*names, names[0]]) == {name: 4 if n < 100 else 0 for n, name in enumerate(names)}
    assert [type(request) for request in home.asked if isinstance(request, GetMany | Together)] == [GetMany, Together]


def test_an_eventual_reader_asks_eventually_consistent_and_still_sums_a_real_set() -> None:
    home = Region()
    home.put(delta(1))
    home.lag()
    home.put(delta(2))
    assert reader(home, consistent=False).read(COUNTER).value == 4
    assert reader(home).read(COUNTER).value == 20


def test_a_table_that_is_always_too_slow_or_does_not_answer_is_an_error() -> None:
    with pytest.raises(ReadTooSlow):
        reader(Region().takes(READ_MS)).read(COUNTER)
    table = Region()
    table.down = True
    with pytest.raises(Unavailable):
        reader(table).value(COUNTER)


def test_a_read_that_may_be_behind_asks_only_the_checkpoints_of_lanes_that_were_folded_lately() -> None:
    home, away = two_regions()
    there = Lane(B, 0, COUNTER)
    cutoff_ms, seconds = NOW_MS - LATENESS_MS, LATENESS_MS / 1_000
    home.put(Delta(LANE, token(1, cutoff_ms), 100), delta(1, there))
    compactor(home, away).compact(COUNTER)
    home.put(Delta(LANE, token(2, NOW_MS), 7))
    whole = reader(home).read(COUNTER)
    assert (whole.value, whole.pending, whole.as_of) == (100 + 4 + 7, 2, to_datetime(NOW_MS))
    home.asked.clear()
    behind = reader(home).read(COUNTER, behind=seconds)
    assert (behind.value, behind.pending, behind.as_of) == (100 + 4, 1, to_datetime(cutoff_ms))
    assert behind.oldest_pending == to_datetime(1_000)
    asked = [each for each in home.asked if isinstance(each, Together)]
    assert asked == [Together((Query(items.delta_pk(there)),))]
    assert reader(home).read(COUNTER, behind=seconds - 0.001) == whole


def test_a_read_passes_through_at_most_twelve_functions_of_the_reader() -> None:
    home = Region()
    home.put(delta(1))
    made = reader(home)
    assert made.read(COUNTER).value == 4
    found = passed(lambda: made.read(COUNTER)).functions
    assert 8 < len([name for name in found if name.startswith("reader/")]) <= 12, found
    assert len(found) <= 80
