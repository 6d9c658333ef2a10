"""The program `read` request by request, and `Reader` as its users see it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from ledger.core import items
from ledger.core.checks import to_datetime
from ledger.core.errors import DamagedItem, ReadTooSlow, Unavailable
from ledger.core.requests import GetMany, Instant, Key, Query, Together, key_of
from ledger.core.values import Checkpoint, Delta, Lane
from reader import Balance
from reader.read import STARTS_MAX, LaneSum, read
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
    folded,
    reader,
    summed,
    token,
    two_regions,
)

OTHER = Lane(B, 0, COUNTER)


def checkpoint(n: int, *, total: int, count: int) -> Checkpoint:
    return Checkpoint(LANE, total, count, token(n), 1, token(n), NOW_MS)


def sums(table: Region, *lanes: Lane, **given: Any) -> list[LaneSum]:
    return table.run(
        read(lanes or [LANE], **{"consistent": True, "read_time_max_ms": READ_MS} | given)
    )[1]


def sleepy(sleeps: int, wall_ms: int, steady_ms: int) -> Region:
    """Its reader sleeps behind each checkpoint, so often: meanwhile the clocks go and the first
    delta is cleaned.
    """

    def after(_: GetMany, answer: Any) -> Any:
        table.now_ms, table.steady_ms = table.now_ms + wall_ms, table.steady_ms + steady_ms
        table.drop(items.delta_key(delta(1)))
        table.store([items.checkpoint_item(checkpoint(1, total=4, count=1))])
        return answer

    table = Region().after(GetMany, after, sleeps)
    table.put(delta(1), delta(2))
    return table


def test_a_read_that_slept_through_a_clean_starts_again() -> None:
    for wall_ms, steady_ms in (
        (READ_MS + 1, 0),  # a frozen process: the wall clock went on
        (0, READ_MS + 1),  # the wall clock was set back meanwhile
        (-1, 0),  # it stepped back
    ):
        table = sleepy(1, wall_ms, steady_ms)
        began, [lane_sum] = table.run(read([LANE], consistent=True, read_time_max_ms=READ_MS))
        assert summed(lane_sum.value) == {1, 2}
        assert sum(isinstance(request, GetMany) for request in table.asked) == 2
        assert began == Instant(NOW_MS + wall_ms, NOW_MS + steady_ms)
    table = sleepy(100, READ_MS + 1, READ_MS + 1)
    with pytest.raises(ReadTooSlow, match=f"{COUNTER}: {STARTS_MAX} reads"):
        sums(table)
    assert sum(isinstance(request, GetMany) for request in table.asked) == STARTS_MAX


def test_a_tail_that_cannot_be_read_fails_the_read() -> None:
    for short in (GetMany, Together):
        with pytest.raises(ValueError, match="shorter"):
            sums(Region().after(short, lambda _, answer: answer[:-1]), LANE, OTHER)
    no_tails = Region().after(
        Together, lambda _, answer: tuple(Unavailable("no answer") for _ in answer)
    )
    with pytest.raises(Unavailable):
        sums(no_tails)


def test_a_damaged_item_is_named_and_never_read_as_0() -> None:
    bad_checkpoint = {
        **items.checkpoint_item(checkpoint(2, total=20, count=2)),
        "total": {"S": "4"},
    }
    bad_delta = {"pk": {"S": items.delta_pk(LANE)}, "sk": {"S": token(9)}, "change": {"N": "0.5"}}
    for damaged in (bad_checkpoint, bad_delta):
        table = Region()
        table.store([damaged])
        with pytest.raises(DamagedItem) as raised:
            sums(table)
        assert Key(raised.value.pk, raised.value.sk) == key_of(damaged)


def test_a_balance_has_value_count_pending_and_parts() -> None:
    home, _ = folded(1, 2, later=(3,))
    home.put(delta(4, OTHER))
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
    assert reader(home).values([*names, names[0]]) == {
        name: 4 if n < 100 else 0 for n, name in enumerate(names)
    }
    assert [type(request) for request in home.asked if isinstance(request, GetMany | Together)] == [
        GetMany,
        Together,
    ]


def test_a_table_that_is_always_too_slow_is_an_error() -> None:
    with pytest.raises(ReadTooSlow):
        reader(Region().takes(READ_MS)).read(COUNTER)
    table = Region()
    table.down = True
    with pytest.raises(Unavailable):
        reader(table).value(COUNTER)


def test_a_read_that_may_be_behind_asks_for_checkpoints_alone() -> None:
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


def test_a_read_is_at_most_twelve_functions_of_the_reader() -> None:
    home = Region()
    home.put(delta(1))
    made = reader(home)
    assert made.read(COUNTER).value == 4
    found = passed(lambda: made.read(COUNTER)).functions
    assert 8 < len([name for name in found if name.startswith("reader/")]) <= 12, found
    assert len(found) <= 61
