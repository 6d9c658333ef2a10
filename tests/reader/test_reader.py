"""`Reader` as its users see it: balances across lanes, bad input, slow tables."""

from datetime import UTC, datetime
from typing import Any

import pytest

from compactor import Compactor
from ledger import items
from ledger.checks import to_datetime
from ledger.errors import InvalidCounter, InvalidInput, ReadTooSlow, Unavailable
from ledger.requests import GetMany, Query, Together
from ledger.values import Delta, Lane
from reader import Balance, Reader
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
    settings,
    slow,
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


def test_as_of_is_aware_and_is_when_the_read_began() -> None:
    as_of = reader(slow(1_000)).read(COUNTER).as_of
    assert (as_of.tzinfo, as_of) == (UTC, datetime.fromtimestamp(NOW_MS / 1000 + 1, UTC))  # after a look at the shape


def test_shards_are_summed_changes_may_be_negative_and_a_counter_that_nobody_wrote_is_0() -> None:
    home = Region()
    balance = reader(home).read("nobody:wrote")
    assert (balance.value, balance.count, balance.pending, balance.by_region) == (0, 0, 0, {A: 0, B: 0})
    home.put(*(delta(n, Lane(A, n, COUNTER)) for n in range(3)))
    assert reader(home, shards={"stock:": 3}).read(COUNTER).by_region == {A: 1 + 4 + 16, B: 0}
    home.store([{"pk": {"S": "delta#eu-west-1#0#a"}, "sk": {"S": delta(1).token}, "change": {"N": "-6"}}])
    compactor(home, Region()).compact("a")
    assert reader(home).value("a") == -6


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
        reader(slow(READ_MS)).read(COUNTER)
    table = Region()
    table.down = True
    with pytest.raises(Unavailable):
        reader(table).value(COUNTER)


def test_what_is_no_counter_or_no_number_of_seconds_is_refused_and_nothing_is_sent() -> None:
    table = Region()
    names: tuple[Any, ...] = ("", "a b", "a\n", "é", "\ud800", "a" * 257, None, 7, b"a")
    for name in names:
        for call in (reader(table).value, reader(table).read, lambda name: reader(table).values([COUNTER, name])):
            with pytest.raises(InvalidCounter):
                call(name)
    with pytest.raises(InvalidInput):
        reader(table).values(COUNTER)  # a single name is no collection of names
    assert reader(table).values([]) == {}
    ages: tuple[Any, ...] = (-1, -0.001, float("nan"), float("inf"), 10**400, "5", None, True)
    for age in ages:
        with pytest.raises(InvalidInput, match="max_age"):
            reader(table).read(COUNTER, max_age=age)
        with pytest.raises(InvalidInput, match="ttl"):
            reader(table, ttl=age)
    behinds: tuple[Any, ...] = (-1, "5", None, True, float("nan"), 10**10)
    for behind in behinds:
        with pytest.raises(InvalidInput, match="behind"):
            reader(table).read(COUNTER, behind=behind)
    assert table.asked == []


def test_any_printable_name_is_a_counter_of_its_own() -> None:
    for name in ("#", "a#b", "delta#eu-west-1#0#a", "fold#x", "%s/..", "checkpoint", "a" * 256):
        home, away = two_regions()
        home.put(delta(1, Lane(A, 0, name)), delta(2, LANE))
        compactor(home, away).compact(name)
        assert reader(home).values([name, COUNTER]) == {name: 4, COUNTER: 16}


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


def test_a_hot_lane_is_answered_by_one_request() -> None:
    home, alone = Region(), settings(regions=(A,))
    home.put(delta(1), delta(2))
    Compactor(alone, tables={A: home}, clock=lambda: NOW_MS).compact(COUNTER)
    home.put(delta(3))
    made = Reader(alone, table=home, clock=lambda: NOW_MS)
    assert made.read(COUNTER, behind=NOW_MS).value == 4 + 16
    assert home.asked[-1] == GetMany((items.checkpoint_key(LANE),))
