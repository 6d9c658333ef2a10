"""`history`: every change once, in the order of time, from segments and tail; and its pages,
with little kept.
"""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compactor import Report
from ledger.core import items, tokens
from ledger.core.errors import NotYetReplicated, ReadTooSlow
from ledger.core.requests import Get, Page, Query, Request
from ledger.core.values import Delta, Lane
from reader import Entry, Position, Reader
from reader.history import SEGMENTS_AT_ONCE, SEGMENTS_MAX, history, page
from reader.read import STARTS_MAX
from tests.world import (
    COUNTER,
    LANE,
    READ_MS,
    A,
    B,
    Region,
    compactor,
    delta,
    folded,
    reader,
    token,
    two_regions,
)


def test_the_checkpoint_comes_before_segments_and_tail() -> None:
    table, _ = folded(1)
    for consistent, how in ((True, " strongly"), (False, "")):
        table.asked.clear()
        table.run(history(LANE, consistent=consistent, read_time_max_ms=READ_MS))
        assert table.in_short == [
            "now",
            f"get checkpoint{how}",
            f"query segment{how}",
            f"query delta{how}",
            "now",
        ]


def test_a_history_that_takes_too_long_says_so() -> None:
    with pytest.raises(ReadTooSlow, match=f"^{LANE}: "):
        reader(Region().takes(READ_MS)).history(COUNTER)


def paged(reader: Reader, limit: int, **bounds: Any) -> list[Entry]:
    """All pages, one after the other; each but the last is full."""
    entries: list[Entry] = []
    after: Position | None = None
    while True:
        answer = reader.history_page(COUNTER, after=after, limit=limit, **bounds)
        entries += answer.entries
        if answer.next is None:
            return entries
        assert len(answer.entries) == limit
        assert after is None or after < answer.next
        after = answer.next


def queries(table: Region, kind: str = "") -> list[Query]:
    return [
        request
        for request in table.asked
        if isinstance(request, Query) and request.pk.startswith(kind)
    ]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=12),
    st.lists(st.integers(0, 12), max_size=3),
    st.integers(1, 5),
    st.integers(1, 3),
    st.tuples(*[st.none() | st.sampled_from([-1, 11]) | st.integers(0, 10)] * 2),
)
# folded, settled, in the tail
@example([(n, True) for n in (2, 4, 6, 1, 3, 5, 7)], [3, 6], 3, 1, (2, 6))
@example([(n, True) for n in (2, 4, 6, 1, 3, 5, 7)], [3, 6], 2, 1, (6, 2))
@settings(max_examples=60, deadline=None)
def test_whatever_was_compacted_when_the_pages_are_the_history(
    puts: list[tuple[int, bool]],
    visits: list[int],
    limit: int,
    fold_max: int,
    seconds: tuple[int | None, int | None],
) -> None:
    """Deltas of the same second and of two Regions, strays among them; `since` is included,
    `until` is not.
    """
    home, away = two_regions(page_size=2)
    for n, (at, here) in enumerate(puts):
        if n in visits:
            compactor(home, away, fold_max=fold_max).compact(COUNTER)
        home.put(delta(n, Lane(A if here else B, 0, COUNTER), at_ms=at * 1_000))
    compactor(home, away, fold_max=fold_max).compact(COUNTER)
    since, until = (None if at is None else datetime.fromtimestamp(at, UTC) for at in seconds)
    found = paged(reader(home), limit, since=since, until=until)
    assert found == list(reader(home).history(COUNTER, since=since, until=until))
    assert all(
        (since is None or since <= entry.at) and (until is None or entry.at < until)
        for entry in found
    )
    assert len(found) == len(puts) or since or until


def test_a_page_is_as_consistent_as_asked_and_bounded() -> None:
    home, _ = folded(*range(3), later=range(3, 9), fold_max=8)
    # Packs that come later may hold what comes earlier: each tail is read on, for twice as many.
    for above, most, first, tails in (
        (None, 5, items.SEGMENTS_FROM, [(f"{token(2)}$", 2), (token(4), 4)]),
        (token(1), 5, items.segments_of_hi(token(1)), [(f"{token(2)}$", 4), (token(6), 8)]),
        (token(4), 2, items.segments_of_hi(token(4)), [(f"{token(4)}$", 2), (token(6), 4)]),
    ):
        for consistent in (True, False):
            home.asked.clear()
            entries = home.run(
                page(LANE, above, None, most, consistent=consistent, read_time_max_ms=READ_MS)
            )
            assert len(entries) == most
            assert home.asked[1:-1] == [  # between the two looks at the clock
                Get(items.checkpoint_key(LANE), consistent),
                Query(items.fold_pk(LANE), first, items.SEGMENTS_UPTO, 1, consistent),
                *(
                    Query(items.delta_pk(LANE), after, None, limit, consistent)
                    for after, limit in tails
                ),
            ]


def test_a_page_ends_with_its_last_token() -> None:
    home, _ = folded(*range(12))
    entries = home.run(page(LANE, None, token(2), 10, consistent=True, read_time_max_ms=READ_MS))
    assert [entry.token for entry in entries] == [token(n) for n in range(3)]
    # the second Query shows the hi above it
    assert [query.limit for query in queries(home, "fold")] == [1, SEGMENTS_AT_ONCE]


def test_a_page_reads_no_segment_that_it_does_not_show() -> None:
    """Whatever is in the lane: the first segment alone, a strong look for others of its hi, and no
    segment of the last commit.
    """
    home, _ = folded(*range(28), fold_max=4)
    last = home.items[items.checkpoint_key(LANE)]
    for above, shown in ((None, range(4)), (token(3), range(4, 8)), (token(19), range(20, 24))):
        home.asked.clear()
        entries = home.run(page(LANE, above, None, 4, consistent=True, read_time_max_ms=READ_MS))
        assert [entry.token for entry in entries] == [token(n) for n in shown]
        assert not [each for each in home.asked if isinstance(each, Get)][1:]
        assert [query.limit for query in queries(home)] == [1, None]
    assert items.checkpoint_of(LANE, last).last == token(27)


def test_a_landing_segment_matters_where_the_page_reads() -> None:
    """The segment of the checkpoint's version is not visible yet: what lies elsewhere is shown."""
    home, _ = folded(*range(12), fold_max=4)
    landing = items.segment_key(LANE, token(11), 3)
    there = home.items.pop(landing)

    def shown(above: str | None, upto: str | None, most: int) -> list[str]:
        found = home.run(page(LANE, above, upto, most, consistent=True, read_time_max_ms=READ_MS))
        return [entry.token for entry in found]

    assert shown(None, None, 4) == [token(n) for n in range(4)]
    assert shown(token(3), token(7), 9) == [token(n) for n in range(4, 8)]
    for above, upto, most in (
        (None, None, 9),
        (token(7), None, 4),
        (token(3), None, 5),
        (token(3), token(8), 9),
    ):
        with pytest.raises(NotYetReplicated):
            shown(above, upto, most)
    home.items[landing] = there
    assert shown(token(3), None, 5) == [token(n) for n in range(4, 9)]


def test_two_settles_on_their_way_are_waited_for() -> None:
    """The checkpoint is ahead of the segments of two commits, as in another Region or for an
    eventually consistent read, and the page shows the range of the first.
    """
    home, away = two_regions()
    home.put(*(delta(n) for n in (1, 2, 3, 4, 6, 7, 8, 9)))
    compactor(home, away, fold_max=4).compact(COUNTER)
    first = {*home.items}
    home.put(delta(0), delta(5))  # a stray under each hi
    compactor(home, away, fold_max=4).compact(COUNTER)
    late = [items.segment_key(LANE, token(hi), version) for hi, version in ((4, 3), (9, 4))]
    assert {*late} <= {*home.items} - first
    home.copy_to(away, *(home.items.keys() - {*late}))
    until = datetime.fromtimestamp(4.5, UTC)

    def shown(consistent: bool, at_home: bool) -> list[str]:
        given: Any = {"consistent": consistent, "at_home": at_home, "read_time_max_ms": READ_MS}
        return [entry.token for entry in away.run(page(LANE, None, token(4), 9, **given))]

    for arrives in late:
        with pytest.raises(NotYetReplicated):
            reader(away, region=B).history_page(COUNTER, until=until)
        for consistent, at_home in ((True, False), (False, True), (False, False)):
            with pytest.raises(NotYetReplicated):
                shown(consistent, at_home)
        home.copy_to(away, arrives)
    found = reader(away, region=B).history_page(COUNTER, until=until).entries
    assert [entry.token for entry in found] == [token(n) for n in range(5)]
    assert shown(False, True) == shown(True, False) == [token(n) for n in range(5)]


def test_a_late_settle_is_in_the_page_of_its_range() -> None:
    """It is above what one Query reads, and its hi is not the highest."""
    home, away = two_regions()
    home.put(*(delta(n) for n in range(1, 9)))
    compactor(home, away, fold_max=4).compact(COUNTER)
    home.put(delta(0))  # a stray, under the first hi
    compactor(home, away, fold_max=4).compact(COUNTER)
    assert items.checkpoint_of(LANE, home.items[items.checkpoint_key(LANE)]).last == token(4)
    for limit in range(1, 10):
        found = paged(reader(home), limit)
        assert [entry.token for entry in found] == [token(n) for n in range(9)]


def test_a_landing_segment_is_waited_for_and_a_lost_one_fails() -> None:
    home, away = folded(1)
    home.after(
        lambda each: isinstance(each, Query) and each.pk == items.fold_pk(LANE),
        lambda *_: Page((), None),
        2,
    )
    assert [entry.change for entry in reader(home).history_page(COUNTER).entries] == [4]
    home.copy_to(away, items.checkpoint_key(LANE))
    for place in (None, Position(token(0), A)):
        with pytest.raises(NotYetReplicated):
            reader(away, region=B).history_page(COUNTER, after=place)


def test_a_slow_tail_is_read_again_and_given_up() -> None:
    late = Region().takes(READ_MS)
    with pytest.raises(ReadTooSlow, match=f"^{LANE}: "):
        late.run(page(LANE, None, None, 10, consistent=True, read_time_max_ms=READ_MS))
    assert len([request for request in late.asked if isinstance(request, Get)]) == STARTS_MAX

    def sleep(_: Query) -> None:
        table.now_ms += READ_MS + 1

    table = Region().before(
        lambda request: isinstance(request, Query) and "fold" in request.pk, sleep
    )
    table.put(*map(delta, range(4)))
    compactor(table, Region()).compact(COUNTER)
    assert [
        entry.change for entry in reader(table, regions=(A,)).history_page(COUNTER, limit=3).entries
    ] == [1, 4, 16]
    with pytest.raises(ReadTooSlow):
        # whether there is a fifth, the tail shows
        reader(table, regions=(A,)).history_page(COUNTER, limit=4)


def one_small_settle_after_the_other(settles: int, **given: Any) -> Region:
    """One delta folded at second 500, and that many segments of one earlier stray each, all
    under its hi.
    """
    home, away = two_regions(**given)
    home.put(Delta(LANE, tokens.make(500_000, bytes(10)), 1))
    compactor(home, away).compact(COUNTER)
    home.put(
        *(Delta(LANE, tokens.make(n * 37 % 1_009, bytes(10)), n) for n in range(1, settles + 1))
    )
    compactor(home, away, fold_max=1).compact(COUNTER)
    home.put(Delta(LANE, tokens.make(600_000, bytes(10)), 1))
    home.asked.clear()
    return home


def test_a_range_of_many_settles_takes_few_queries() -> None:
    home = one_small_settle_after_the_other(120)
    reader(home, regions=(A,)).history_page(COUNTER, limit=5)
    # 1 + 4 + 8, then all others of the one hi
    assert [query.limit for query in queries(home)] == [1, 4, 8, None]
    for limit in (30, 1_000):
        found = paged(reader(home), limit)
        assert (len(found), found) == (122, list(reader(home).history(COUNTER)))
    home = one_small_settle_after_the_other(20, page_size=1)
    growing = [1, *(SEGMENTS_AT_ONCE << n for n in range(9))]  # the last one reads SEGMENTS_MAX
    for limit, limits in ((5, growing[:6] + [None] * 15), (99, growing + [SEGMENTS_MAX] * 12)):
        home.asked.clear()
        reader(home, regions=(A,)).history_page(COUNTER, limit=limit)
        assert [query.limit for query in queries(home, "fold")][:21] == limits[:21]


def test_a_commit_within_a_page_lists_nothing_twice() -> None:
    """The segment of that commit lists what the tail above the older watermark holds, too."""
    for place, first in ((None, 0), (Position(token(0), A), 1)):
        table, _ = folded(*range(3), later=range(3, 6))
        reports = list[Report]()

        def commit(
            _: Request, answer: Any, table: Region = table, reports: list[Report] = reports
        ) -> Any:
            reports.append(compactor(table, Region()).compact(COUNTER))
            return answer

        table.after(lambda request: request == Get(items.checkpoint_key(LANE)), commit, times=1)
        found = reader(table).history_page(COUNTER, after=place, limit=20).entries
        assert [report.folded for report in reports] == [3]
        assert [entry.change for entry in found] == [4**n for n in range(first, 6)]
