"""The program `fold`: what it takes of the tail, and what a commit may rest on."""

from typing import Any

from compactor.fold import COMMITS_MAX, QUERY_MS, fold
from compactor.report import Tally
from compactor.settle_named import ASK_AGAIN_MS
from ledger.core import items, tokens
from ledger.core.requests import Program, Query, Transact
from ledger.core.values import Checkpoint
from tests.world import (
    LANE,
    LATENESS_MS,
    NOW_MS,
    Region,
    delta,
    in_one_day,
    settings,
    summed,
    token,
    value,
)


def folding(
    tally: Tally | None = None, commits_max: int = COMMITS_MAX, **changed: Any
) -> Program[Checkpoint | None]:
    return fold(
        LANE, tally or Tally(), settings(**{"fold_max": 8} | changed), commits_max=commits_max
    )


def test_what_it_costs() -> None:
    """It begins, then fixes the cutoff, then queries, then commits, and begins again."""
    table = Region()
    table.put(delta(1), delta(2))
    checkpoint = Checkpoint(LANE, 4 + 16, 2, token(2), 1, token(2), NOW_MS, in_one_day(2, 20))
    tally = Tally()
    assert table.run(folding(tally)) == checkpoint
    assert table.in_short == [
        *(
            "get checkpoint strongly",
            "query segment 2 strongly",
            "now",
            "query delta strongly",
            "now",
        ),
        *("put lane", "transact checkpoint segment"),
        *("get checkpoint strongly", "get segment strongly", "now"),
    ]
    cutoff = tokens.last_of(NOW_MS - LATENESS_MS)
    assert Query(items.delta_pk(LANE), None, items.tail_upto(cutoff), None, True) in table.asked
    assert (tally.folded, tally.commits) == (2, 1)
    # the deltas are not touched
    assert {items.delta_key(delta(n)) for n in (1, 2)} <= set(table.items)


def test_what_is_old_enough_is_folded_whatever_the_clock_says() -> None:
    latest_ms = tokens.TIME_MS_MAX
    for now_ms, at_ms, folded in (
        (NOW_MS, NOW_MS - LATENESS_MS, 1),
        (NOW_MS, NOW_MS - LATENESS_MS + 1, 0),
        # either end of what a token holds
        *((LATENESS_MS, 0, 1), (latest_ms + LATENESS_MS, latest_ms, 1)),
        # it says nothing about lateness
        *((LATENESS_MS - 1, 0, 0), (-1, 0, 0), (latest_ms + LATENESS_MS + 1, 1, 0)),
    ):
        table, tally = Region(), Tally()
        table.put(delta(1, at_ms=at_ms))
        table.now_ms = now_ms
        assert (table.run(folding(tally)) is None) == (not folded)
        assert (tally.folded, tally.commits) == (folded, folded)


def test_a_commit_has_at_most_fold_max_and_leaves_the_rest() -> None:
    for page_size in (1, 2, 1_000):
        table, tally = Region(page_size=page_size), Tally()
        table.put(*map(delta, range(1, 8)))
        table.run(folding(tally, fold_max=3, fold_min=2))
        segments = [
            items.segment_of(LANE, item)
            for key, item in table.items.items()
            if key.sk.startswith("segment#")
        ]
        assert [
            (segment.hi, segment.version, summed(segment.entries.total)) for segment in segments
        ] == [
            (token(3), 1, {1, 2, 3}),
            (token(6), 2, {4, 5, 6}),
        ]
        assert (tally.folded, tally.commits, tally.unfolded) == (6, 2, False)
        assert value(table) == set(range(1, 8))
    table = Region()
    table.put(*map(delta, range(1, 6)))
    left = table.run(folding(tally := Tally(), fold_max=1, commits_max=3))
    assert left is not None
    assert (left.count, value(table)) == (3, set(range(1, 6)))
    assert (tally.folded, tally.commits, tally.unfolded) == (3, 3, True)


def of_the_tail(request: object) -> bool:
    return isinstance(request, Query) and request.pk == items.delta_pk(LANE)


def queries(table: Region) -> int:
    return sum(map(of_the_tail, table.asked))


def sleepy(wall_ms: int, steady_ms: int, times: int) -> Region:
    """The first so many Queries of the tail take their time, by either clock or both."""
    table = Region()

    def sleep(_: object, answer: object) -> object:
        table.now_ms, table.steady_ms = table.now_ms + wall_ms, table.steady_ms + steady_ms
        table.put(delta(1))  # what comes meanwhile is seen when all is read anew
        return answer

    table.after(of_the_tail, sleep, times)
    return table


def test_a_commit_rests_on_a_query_of_the_last_two_minutes() -> None:
    assert QUERY_MS == 120_000
    # by then each fold that was under way has committed or never will
    assert ASK_AGAIN_MS >= 2 * QUERY_MS
    late = QUERY_MS + 1
    for wall_ms, steady_ms, anew in (
        (QUERY_MS, QUERY_MS, 0),
        (late, 0, 2),
        (0, late, 2),
        (-1, 0, 2),
        (late, late, 2),
    ):
        table, tally = sleepy(wall_ms, steady_ms, 2), Tally()
        table.put(delta(2), delta(3))
        table.run(folding(tally))
        assert queries(table) == 1 + anew
        assert (tally.folded, tally.commits) == ((3, 1) if anew else (2, 1))
    table = sleepy(late, 0, 3)
    table.put(delta(2))
    tally = Tally()
    assert table.run(folding(tally, commits_max=3)) is None
    assert (tally.commits, tally.unfolded, value(table)) == (0, True, {1, 2})


def test_the_age_of_the_query_counts_for_each_commit_of_a_visit() -> None:
    table, tally = Region(), Tally()
    table.takes(QUERY_MS // 2, Transact)
    table.put(*map(delta, range(1, 7)))
    table.run(folding(tally, fold_max=1))
    assert (tally.folded, queries(table)) == (6, 2)
    assert value(table) == set(range(1, 7))
