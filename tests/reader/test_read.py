"""The program `read`, request by request."""

from typing import Any

import pytest

from ledger import items
from ledger.errors import DamagedItem, ReadTooSlow, Unavailable
from ledger.requests import GetMany, Instant, Key, Now, Query, Together, key_of
from ledger.values import Checkpoint, Lane
from reader.read import STARTS_MAX, LaneSum, read
from tests.world import COUNTER, LANE, NOW_MS, READ_MS, B, Region, delta, summed, token

OTHER = Lane(B, 0, COUNTER)


def checkpoint(n: int, *, total: int, count: int) -> Checkpoint:
    return Checkpoint(LANE, total, count, token(n), 1, token(n), NOW_MS)


def sums(table: Region, *lanes: Lane, **given: Any) -> list[LaneSum]:
    return table.run(read(lanes or [LANE], **{"consistent": True, "read_time_max_ms": READ_MS} | given))[1]


def test_the_checkpoints_come_before_the_tails_and_the_clock_is_asked_before_and_after() -> None:
    for consistent in (True, False):
        table = Region(page_size=2)
        table.store([items.checkpoint_item(checkpoint(2, total=20, count=2))])
        table.put(*map(delta, (1, 2, 3, 4, 5)), delta(6, OTHER))
        began, found = table.run(read([LANE, OTHER], consistent=consistent, read_time_max_ms=READ_MS))

        def tail(lane: Lane, after: str | None, consistent: bool = consistent) -> Query:
            return Query(items.delta_pk(lane), after=after, upto=None, limit=None, consistent=consistent)

        assert [request for request in table.asked if not isinstance(request, Query)] == [
            Now(),
            GetMany((items.checkpoint_key(LANE), items.checkpoint_key(OTHER)), consistent),
            Together((tail(LANE, f"{token(2)}$"), tail(OTHER, None))),
            Together((tail(LANE, token(4)),)),
            Now(),
        ]
        assert began == Instant(NOW_MS, NOW_MS)
        assert found == [
            LaneSum(LANE, 20 + 4**3 + 4**4 + 4**5, 5, pending=3, oldest_ms=3_000),
            LaneSum(OTHER, 4**6, 1, pending=1, oldest_ms=6_000),
        ]


def sleepy(sleeps: int, wall_ms: int, steady_ms: int) -> Region:
    """Its reader sleeps behind each checkpoint, so often: meanwhile the clocks go and the first delta is cleaned."""

    def after(_: GetMany, answer: Any) -> Any:
        table.now_ms, table.steady_ms = table.now_ms + wall_ms, table.steady_ms + steady_ms
        table.drop(items.delta_key(delta(1)))
        table.store([items.checkpoint_item(checkpoint(1, total=4, count=1))])
        return answer

    table = Region().after(GetMany, after, sleeps)
    table.put(delta(1), delta(2))
    return table


def test_a_read_that_slept_while_its_deltas_were_cleaned_starts_again_from_the_checkpoint() -> None:
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


def test_a_tail_that_cannot_be_read_or_an_answer_that_is_left_out_fails_the_read() -> None:
    for short in (GetMany, Together):
        with pytest.raises(ValueError, match="shorter"):
            sums(Region().after(short, lambda _, answer: answer[:-1]), LANE, OTHER)
    no_tails = Region().after(Together, lambda _, answer: tuple(Unavailable("no answer") for _ in answer))
    with pytest.raises(Unavailable):
        sums(no_tails)


def test_a_damaged_checkpoint_or_delta_is_named_and_never_read_as_0() -> None:
    bad_checkpoint = {**items.checkpoint_item(checkpoint(2, total=20, count=2)), "total": {"S": "4"}}
    bad_delta = {"pk": {"S": items.delta_pk(LANE)}, "sk": {"S": token(9)}, "change": {"N": "0.5"}}
    for damaged in (bad_checkpoint, bad_delta):
        table = Region()
        table.store([damaged])
        with pytest.raises(DamagedItem) as raised:
            sums(table)
        assert Key(raised.value.pk, raised.value.sk) == key_of(damaged)
