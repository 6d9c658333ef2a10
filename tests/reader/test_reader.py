"""`Reader` as its users see it: balances across lanes, bad input, slow tables."""

from datetime import UTC, datetime
from typing import Any

import pytest

from ledger.errors import InvalidCounter, InvalidInput, ReadTooSlow, Unavailable
from ledger.requests import GetMany, Together
from ledger.values import Lane
from reader import Balance
from tests.support import COUNTER, LANE, NOW_MS, READ_MS, A, B, Region, Slow, compactor, delta, reader, two_regions


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
    as_of = reader(Slow(1_000)).read(COUNTER).as_of
    assert (as_of.tzinfo, as_of) == (UTC, datetime.fromtimestamp(NOW_MS / 1000 + 1, UTC))  # after a look at the shape


def test_a_counter_that_nobody_wrote_is_0() -> None:
    balance = reader(Region()).read("nobody:wrote")
    assert (balance.value, balance.count, balance.pending, balance.by_region) == (0, 0, 0, {A: 0, B: 0})


def test_the_shards_of_a_counter_are_summed() -> None:
    home = Region()
    home.put(*(delta(n, Lane(A, n, COUNTER)) for n in range(3)))
    assert reader(home, shards={"stock:": 3}).read(COUNTER).by_region == {A: 1 + 4 + 16, B: 0}


def test_changes_may_be_negative() -> None:
    home = Region()
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
        reader(Slow(READ_MS)).read(COUNTER)
    table = Region()
    table.down = True
    with pytest.raises(Unavailable):
        reader(table).value(COUNTER)


@pytest.mark.parametrize("name", ["", "a b", "a\n", "é", "\ud800", "a" * 257, None, 7, b"a"])
def test_a_name_that_is_no_counter_is_refused_and_nothing_is_sent(name: Any) -> None:
    table = Region()
    for call in (reader(table).value, reader(table).read, lambda name: reader(table).values([COUNTER, name])):
        with pytest.raises(InvalidCounter):
            call(name)
    with pytest.raises(InvalidInput):
        reader(table).values(COUNTER)  # a single name is no collection of names
    assert reader(table).values([]) == {}
    assert table.asked == []


@pytest.mark.parametrize("name", ["#", "a#b", "delta#eu-west-1#0#a", "fold#x", "%s/..", "checkpoint", "a" * 256])
def test_any_printable_name_is_a_counter_of_its_own(name: str) -> None:
    home, away = two_regions()
    home.put(delta(1, Lane(A, 0, name)), delta(2, LANE))
    compactor(home, away).compact(name)
    assert reader(home).values([name, COUNTER]) == {name: 4, COUNTER: 16}


@pytest.mark.parametrize(
    "seconds", [-1, -0.001, float("nan"), float("inf"), pytest.param(10**400, id="10**400"), "5", None, True]
)
def test_an_age_that_is_no_number_of_seconds_is_refused(seconds: Any) -> None:
    table = Region()
    with pytest.raises(InvalidInput, match="max_age"):
        reader(table).read(COUNTER, max_age=seconds)
    with pytest.raises(InvalidInput, match="ttl"):
        reader(table, ttl=seconds)
    assert table.asked == []
