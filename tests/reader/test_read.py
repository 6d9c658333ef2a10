"""The program `read`, request by request."""

from dataclasses import replace
from typing import Any

import pytest

from ledger import items
from ledger.errors import DamagedItem, ReadTooSlow, Unavailable
from ledger.lane.tail import through
from ledger.requests import GetMany, Instant, Now, Program, Query, Request, Together, in_time
from ledger.values import Checkpoint, Lane
from reader.read import LaneSum, read
from reader.restart import STARTS_MAX
from tests.support import COUNTER, LANE, NOW_MS, READ_MS, B, Region, compactor, delta, summed, token, two_regions

OTHER = Lane(B, 0, COUNTER)


def checkpoint(n: int, *, total: int, count: int) -> Checkpoint:
    return Checkpoint(LANE, total, count, token(n), 1, token(n), NOW_MS)


def asked_of_the_table(table: Region) -> list[Request]:
    """What the program asked; the queries of a Together are told by it."""
    return [request for request in table.asked if not isinstance(request, Query)]


@pytest.mark.parametrize("consistent", [True, False])
def test_the_checkpoints_come_before_the_tails_and_the_clock_is_asked_before_and_after(consistent: bool) -> None:
    table = Region(page_size=2)
    table.store([items.checkpoint_item(checkpoint(2, total=20, count=2))])
    table.put(*map(delta, (1, 2, 3, 4, 5)), delta(6, OTHER))

    began, sums = table.run(read([LANE, OTHER], consistent=consistent, read_time_max_ms=READ_MS))

    def tail(lane: Lane, after: str | None) -> Query:
        return Query(items.delta_pk(lane), after=after, upto=None, limit=None, consistent=consistent)

    assert asked_of_the_table(table) == [
        Now(),
        GetMany((items.checkpoint_key(LANE), items.checkpoint_key(OTHER)), consistent),
        Together((tail(LANE, f"{token(2)}$"), tail(OTHER, None))),
        Together((tail(LANE, token(4)),)),
        Now(),
    ]
    assert began == Instant(NOW_MS, NOW_MS)
    assert sums == [
        LaneSum(LANE, 20 + 4**3 + 4**4 + 4**5, 5, pending=3, oldest_ms=3_000),
        LaneSum(OTHER, 4**6, 1, pending=1, oldest_ms=6_000),
    ]


def test_a_lane_that_nobody_wrote_sums_to_nothing_and_the_watermark_itself_is_not_counted_again() -> None:
    table = Region()
    _, sums = table.run(read([LANE], consistent=True, read_time_max_ms=READ_MS))
    assert sums == [LaneSum(LANE, 0, 0, 0)]
    table.store([items.checkpoint_item(checkpoint(2, total=16, count=1))])
    table.put(delta(2))
    _, [lane_sum] = table.run(read([LANE], consistent=True, read_time_max_ms=READ_MS))
    assert (lane_sum.value, lane_sum.count, lane_sum.pending) == (16, 1, 0)


@pytest.mark.parametrize(("given", "pending"), [({}, 1), ({"behind_ms": 1}, 0)])
def test_a_tail_is_left_out_where_a_read_may_be_behind_and_else_never(given: dict[str, int], pending: int) -> None:
    table = Region()
    table.store([items.checkpoint_item(replace(checkpoint(2, total=16, count=1), watermark=token(2, NOW_MS)))])
    table.put(delta(3, at_ms=NOW_MS))
    _, [lane_sum] = table.run(read([LANE], consistent=True, read_time_max_ms=READ_MS, **given))
    assert (lane_sum.count, lane_sum.pending) == (1 + pending, pending)


class Sleepy(Region):
    """A Region whose reader sleeps inside its first reads: while it sleeps, a clock goes and the deltas are cleaned."""

    def __init__(self, sleeps: int, wall_ms: int, steady_ms: int) -> None:
        super().__init__()
        self.sleeps, self.wall_ms, self.steady_ms_each = sleeps, wall_ms, steady_ms

    def sleep(self) -> None:
        if self.sleeps:
            self.sleeps -= 1
            self.now_ms += self.wall_ms
            self.steady_ms += self.steady_ms_each
            self.drop(items.delta_key(delta(1)))
            self.store([items.checkpoint_item(checkpoint(1, total=4, count=1))])


def _reading(table: Sleepy) -> tuple[Instant, list[LaneSum]]:
    def step(request: Request) -> Program[Any]:
        answer = yield request
        if isinstance(request, GetMany):
            table.sleep()  # between the checkpoint and the tail
        return answer

    return table.run(through(read([LANE], consistent=True, read_time_max_ms=READ_MS), step))


@pytest.mark.parametrize(
    ("wall_ms", "steady_ms"),
    [(READ_MS + 1, 0), (0, READ_MS + 1), (-1, 0)],
    ids=["a frozen process: the wall clock went on", "the wall clock was set back meanwhile", "it stepped back"],
)
def test_a_read_that_slept_while_its_deltas_were_cleaned_starts_again_from_the_checkpoint(
    wall_ms: int, steady_ms: int
) -> None:
    table = Sleepy(1, wall_ms, steady_ms)
    table.put(delta(1), delta(2))
    began, [lane_sum] = _reading(table)
    assert summed(lane_sum.value) == {1, 2}
    assert sum(isinstance(request, GetMany) for request in table.asked) == 2
    assert began == Instant(NOW_MS + wall_ms, NOW_MS + steady_ms)


def test_a_read_that_is_always_too_slow_says_so_after_a_bounded_number_of_starts() -> None:
    table = Sleepy(100, READ_MS + 1, READ_MS + 1)
    with pytest.raises(ReadTooSlow, match=f"{COUNTER}: {STARTS_MAX} reads"):
        _reading(table)
    assert sum(isinstance(request, GetMany) for request in table.asked) == STARTS_MAX


@pytest.mark.parametrize(
    ("wall_ms", "steady_ms", "holds"),
    [(0, 0, True), (READ_MS, READ_MS, True), (READ_MS + 1, 0, False), (0, READ_MS + 1, False), (-1, 0, False)],
)
def test_a_read_is_in_time_when_both_clocks_say_so(wall_ms: int, steady_ms: int, holds: bool) -> None:
    assert in_time(Instant(NOW_MS, 7), Instant(NOW_MS + wall_ms, 7 + steady_ms), READ_MS) is holds


@pytest.mark.parametrize("short", [GetMany, Together])
def test_a_table_that_leaves_an_answer_out_fails_the_read(short: type[Request]) -> None:
    class Forgetful(Region):
        def answer(self, request: Request, /) -> Any:
            answer = super().answer(request)
            return answer[:-1] if isinstance(request, short) else answer

    with pytest.raises(ValueError, match="shorter"):
        Forgetful().run(read([LANE, OTHER], consistent=True, read_time_max_ms=READ_MS))


def test_a_tail_that_cannot_be_read_fails_the_read() -> None:
    class NoQueries(Region):
        def answer(self, request: Request, /) -> object:
            if isinstance(request, Query):
                raise Unavailable("no answer")
            return super().answer(request)

    with pytest.raises(Unavailable):
        NoQueries().run(read([LANE], consistent=True, read_time_max_ms=READ_MS))


@pytest.mark.parametrize(
    "damage",
    [
        *({"total": total} for total in ({"S": "4"}, {"N": "1.5"}, {"N": str(2 * 10**18 + 1)})),
        *({"count": {"N": "-1"}}, {"version": {"N": "0"}}, {"watermark": {"S": "tomorrow"}}, {"watermark": {"N": "1"}}),
        *({"last": {}}, {"committed_ms": {"S": "1000000"}}),
    ],
    ids=str,
)
def test_a_damaged_checkpoint_is_named_and_never_read_as_0(damage: dict[str, dict[str, str]]) -> None:
    table = Region()
    table.store([{**items.checkpoint_item(checkpoint(2, total=20, count=2)), **damage}])
    with pytest.raises(DamagedItem) as raised:
        table.run(read([LANE], consistent=True, read_time_max_ms=READ_MS))
    assert (raised.value.pk, raised.value.sk) == (items.fold_pk(LANE), "checkpoint")


@pytest.mark.parametrize(
    ("sk", "change"),
    [
        *((sk, {"N": "1"}) for sk in ("junk", token(9).lower(), token(9) + " ")),
        *((token(9), change) for change in ({"S": "1"}, {"N": "1E2"}, {"N": "0.5"}, {"N": str(10**18 + 1)}, {})),
    ],
)
def test_a_damaged_delta_in_the_tail_is_named_and_never_read_as_0(sk: str, change: dict[str, str]) -> None:
    home, away = two_regions()
    home.put(delta(1))
    compactor(home, away).compact(COUNTER)
    home.store([{"pk": {"S": items.delta_pk(LANE)}, "sk": {"S": sk}, "change": change}])
    with pytest.raises(DamagedItem) as raised:
        home.run(read([LANE], consistent=True, read_time_max_ms=READ_MS))
    assert (raised.value.pk, raised.value.sk) == (items.delta_pk(LANE), sk)
