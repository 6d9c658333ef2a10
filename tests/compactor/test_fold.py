"""The program `fold`, request by request."""

from typing import Any

import pytest

from compactor.fold import QUERY_MS, fold
from compactor.report import Tally
from ledger import items, tokens
from ledger.conditions import Absent
from ledger.lane import directory
from ledger.lane.add import pack_of
from ledger.requests import Get, Now, Program, Put, Query, Request, Transact
from ledger.values import Checkpoint, Segment
from tests.world import LANE, LATENESS_MS, NOW_MS, Region, delta, summed, token, value

CUTOFF = tokens.last_of(NOW_MS - LATENESS_MS)


def folding(tally: Tally | None = None, **changed: Any) -> Program[Checkpoint | None]:
    tuned = {"allowed_lateness_ms": LATENESS_MS, "fold_min": 1, "fold_max": 8} | changed
    return fold(LANE, tally or Tally(), **tuned)


def test_it_begins_then_fixes_the_cutoff_then_queries_then_commits_and_begins_again() -> None:
    table = Region()
    table.put(delta(1), delta(2))
    checkpoint = Checkpoint(LANE, 4 + 16, 2, token(2), 1, token(2), NOW_MS)
    tally = Tally()
    assert table.run(folding(tally)) == checkpoint
    assert table.asked == [
        Get(items.checkpoint_key(LANE), True),
        Query(items.fold_pk(LANE), "segment#", "segment$", 2, True),
        Now(),
        Query(items.delta_pk(LANE), None, items.tail_upto(CUTOFF), None, True),
        Now(),
        Put(directory.item_of(LANE)),
        Transact(
            (
                Put(items.checkpoint_item(checkpoint), Absent()),
                Put(items.segment_item(Segment.of(LANE, token(2), 1, [delta(1), delta(2)])), Absent()),
            )
        ),
        Get(items.checkpoint_key(LANE), True),
        Get(items.segment_key(LANE, token(2), 1), True),
        Now(),
    ]
    assert (tally.folded, tally.commits) == (2, 1)
    assert {items.delta_key(delta(n)) for n in (1, 2)} <= set(table.items)  # the deltas are not touched


@pytest.mark.parametrize(("at_ms", "folded"), [(NOW_MS - LATENESS_MS, 1), (NOW_MS - LATENESS_MS + 1, 0)])
def test_a_delta_younger_than_the_allowed_lateness_is_left_in_the_tail(at_ms: int, folded: int) -> None:
    table, tally = Region(), Tally()
    table.put(delta(1, at_ms=at_ms))
    table.run(folding(tally))
    assert tally.folded == folded
    assert value(table) == {1}


@pytest.mark.parametrize("page_size", [1, 2, 3])
def test_a_commit_passes_by_no_entry_of_a_pack_whose_other_entries_are_a_span_younger(page_size: int) -> None:
    home = Region(page_size=page_size)
    home.put(*map(delta, (1, 2, 4, 8, 12)))
    home.store([items.pack_item(pack_of([delta(3), delta(13)]))])  # behind all others, and 3 is before most of them
    for last in (1, 2, 3, 4, 8, 12, 13):
        fold_once(home)
        assert (value(home), watermark(home)) == ({1, 2, 3, 4, 8, 12, 13}, token(last))


def fold_once(home: Region) -> None:
    """One commit of one entry."""
    home.run(fold(LANE, Tally(), allowed_lateness_ms=LATENESS_MS, fold_min=1, fold_max=1, commits_max=1))


def watermark(home: Region) -> str:
    return items.checkpoint_of(LANE, home.items[items.checkpoint_key(LANE)]).watermark


def test_fewer_than_fold_min_are_left() -> None:
    table, tally = Region(), Tally()
    table.put(delta(1), delta(2))
    assert table.run(folding(tally, fold_min=3)) is None
    assert tally == Tally()
    table.put(delta(3))
    table.run(folding(tally, fold_min=3))
    assert tally.folded == 3


@pytest.mark.parametrize("page_size", [1, 2, 1_000])
def test_at_most_fold_max_make_a_commit_and_the_rest_the_next(page_size: int) -> None:
    table, tally = Region(page_size=page_size), Tally()
    table.put(*map(delta, range(1, 8)))
    table.run(folding(tally, fold_max=3, fold_min=2))
    segments = [items.segment_of(LANE, item) for key, item in table.items.items() if key.sk.startswith("segment#")]
    assert [(segment.hi, segment.version, summed(segment.entries.total)) for segment in segments] == [
        (token(3), 1, {1, 2, 3}),
        (token(6), 2, {4, 5, 6}),
    ]
    assert (tally.folded, tally.commits) == (6, 2)
    assert value(table) == set(range(1, 8))


def test_no_more_pages_are_read_than_tell_that_a_commit_has_the_lowest() -> None:
    table = Region(page_size=1)
    table.put(*(delta(n, at_ms=11_000 * n) for n in range(1, 9)))
    table.run(folding(fold_max=3, commits_max=1))
    pages = [request for request in table.asked if isinstance(request, Query) and request.pk == items.delta_pk(LANE)]
    assert len(pages) == 4  # after the fourth, no pack can come that holds what is below the third
    assert value(table) == {*range(1, 9)}


def test_the_commits_of_one_visit_are_bounded_and_the_checkpoint_returned_is_the_last() -> None:
    table, tally = Region(), Tally()
    table.put(*map(delta, range(1, 6)))
    checkpoint = table.run(folding(tally, fold_max=1, commits_max=3))
    assert checkpoint is not None
    assert (tally.commits, checkpoint.version, checkpoint.watermark) == (3, 3, token(3))


def test_a_cutoff_before_the_watermark_folds_nothing() -> None:
    table, tally = Region(), Tally()
    table.put(delta(5))
    table.run(folding())
    table.put(delta(3), delta(6))
    table.now_ms = 4_000 + LATENESS_MS
    checkpoint = table.run(folding(tally))
    assert checkpoint is not None
    assert (checkpoint.version, tally) == (1, Tally())


@pytest.mark.parametrize("now_ms", [LATENESS_MS - 1, -1, tokens.TIME_MS_MAX + LATENESS_MS + 1])
def test_a_clock_that_says_nothing_about_lateness_folds_nothing(now_ms: int) -> None:
    table, tally = Region(), Tally()
    table.put(delta(1))
    table.now_ms = now_ms
    assert table.run(folding(tally)) is None
    assert tally == Tally()


@pytest.mark.parametrize("cutoff_ms", [0, tokens.TIME_MS_MAX])
def test_a_cutoff_at_either_end_of_what_a_token_holds_folds_the_delta_of_that_moment(cutoff_ms: int) -> None:
    table, tally = Region(), Tally()
    table.put(delta(1, at_ms=cutoff_ms))
    table.now_ms = cutoff_ms + LATENESS_MS
    table.run(folding(tally))
    assert tally.folded == 1


class Sleepy(Region):
    """The first so many Queries of the tail take their time, by either clock or both."""

    def __init__(self, wall_ms: int, steady_ms: int, times: int) -> None:
        super().__init__()
        self.takes_ms, self.times = (wall_ms, steady_ms), times

    def answer(self, request: Request, /) -> Any:
        answer = super().answer(request)
        if isinstance(request, Query) and request.pk == items.delta_pk(LANE) and self.times:
            self.times -= 1
            self.now_ms, self.steady_ms = self.now_ms + self.takes_ms[0], self.steady_ms + self.takes_ms[1]
            self.put(delta(1))  # what comes meanwhile is seen when all is read anew
        return answer


def queries(table: Region) -> int:
    return sum(isinstance(each, Query) and each.pk == items.delta_pk(LANE) for each in table.asked)


@pytest.mark.parametrize(
    ("wall_ms", "steady_ms", "anew"),
    [
        (QUERY_MS, QUERY_MS, 0),
        (QUERY_MS + 1, 0, 2),
        (0, QUERY_MS + 1, 2),
        (-1, 0, 2),
        (QUERY_MS + 1, QUERY_MS + 1, 2),
    ],
)
def test_no_commit_rests_on_a_query_that_is_older_than_two_minutes_by_either_clock(
    wall_ms: int, steady_ms: int, anew: int
) -> None:
    table, tally = Sleepy(wall_ms, steady_ms, 2), Tally()
    table.put(delta(2), delta(3))
    table.run(folding(tally))
    assert queries(table) == 1 + anew
    assert (tally.folded, tally.commits) == ((3, 1) if anew else (2, 1))
    assert QUERY_MS == 120_000


def test_the_age_of_the_query_counts_for_each_commit_of_a_visit() -> None:
    class Slow(Region):
        def answer(self, request: Request, /) -> Any:
            if isinstance(request, Transact):
                self.now_ms += QUERY_MS // 2
            return super().answer(request)

    table, tally = Slow(), Tally()
    table.put(*map(delta, range(1, 7)))
    table.run(folding(tally, fold_max=1))
    assert (tally.folded, queries(table)) == (6, 2)
    assert value(table) == set(range(1, 7))


def test_a_tail_that_always_takes_too_long_ends_the_visit_without_a_commit() -> None:
    table, tally = Sleepy(QUERY_MS + 1, 0, 99), Tally()
    table.put(delta(2))
    assert table.run(folding(tally, commits_max=3)) is None
    assert (tally.commits, tally.unfolded) == (0, True)
    table.times = 0
    assert value(table) == {1, 2}


def test_a_clock_far_ahead_takes_no_watermark_above_the_last_delta() -> None:
    table = Region()
    table.put(delta(1), delta(2))
    table.now_ms = tokens.TIME_MS_MAX
    checkpoint = table.run(folding())
    assert checkpoint is not None
    assert checkpoint.watermark == token(2)
