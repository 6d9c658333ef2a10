"""The program `settle`: a stray counts from the next settle on, once."""

import pytest

from compactor.report import Tally
from compactor.settle import settle
from ledger import items
from ledger.conditions import Absent
from ledger.errors import DamagedItem, GaveUp, LaneDamaged
from ledger.items import version_is
from ledger.requests import Get, Now, Put, Query, Transact
from ledger.values import Checkpoint, Segment
from tests.world import LANE, Region, compact_for_long, compactor, delta, refused, summed, token, two_regions, value


def folded(*numbers: int, page_size: int = 1_000) -> Region:
    """A lane in which each of these deltas was folded by a commit of its own."""
    home, away = two_regions(page_size=page_size)
    home.put(*map(delta, numbers))
    compactor(home, away, fold_max=1).compact(LANE.counter)
    home.asked.clear()
    return home


def settled(table: Region, *, upto: int = 2, fold_max: int = 8) -> Tally:
    table.run(settle(LANE, tally := Tally(), token(upto), fold_max=fold_max))
    return tally


def test_candidates_are_sought_cheaply_and_confirmed_by_begin_then_the_covering_segments_strongly() -> None:
    table = folded(2)
    table.put(delta(1), delta(3))
    tally = settled(table)
    checkpoint = Checkpoint(LANE, 4 + 16, 2, token(2), 2, token(2), table.now_ms)
    assert table.asked == [
        Query(items.delta_pk(LANE), None, items.tail_upto(token(2)), None, False),
        Query(items.fold_pk(LANE), f"segment#{token(1)}", "segment$", 1, False),
        Get(items.checkpoint_key(LANE), True),
        Get(items.segment_key(LANE, token(2), 1), True),
        Now(),
        Query(items.fold_pk(LANE), f"segment#{token(1)}", "segment$", 1, True),
        Transact(
            (
                Put(items.checkpoint_item(checkpoint), version_is(1)),
                Put(items.segment_item(Segment.of(LANE, token(2), 2, [delta(1)])), Absent()),
            )
        ),
    ]
    assert (tally.settled, tally.commits) == (1, 1)
    assert value(table) == {1, 2, 3}


def test_every_segment_under_the_covering_hi_is_read_page_by_page() -> None:
    table = folded(9, page_size=1)
    for n in (1, 2, 3):
        table.put(delta(n))
        settled(table, upto=9)
    table.asked.clear()
    assert settled(table, upto=9) == Tally(since=token(3))
    assert not any(request.consistent for request in table.asked if isinstance(request, Query))  # nothing to confirm
    assert value(table) == {1, 2, 3, 9}
    under_hi = [request.upto for request in table.asked if isinstance(request, Query) and request.limit is None]
    assert under_hi.count(f"segment#{token(9)}$") == 3 * 4  # four pages under hi, the first of them by Limit 1


def test_each_range_is_settled_under_its_own_hi_and_the_watermark_stays() -> None:
    table = folded(3, 6, 9)
    table.put(*map(delta, (1, 2, 4, 7, 8)))
    tally = settled(table, upto=9)
    written = [
        (key.sk.split("#")[1], summed(items.segment_of(LANE, item).entries.total))
        for key, item in table.items.items()
        if key.sk.startswith("segment#") and int(key.sk[-10:]) > 3
    ]
    assert written == [(token(3), {1, 2}), (token(6), {4}), (token(9), {7, 8})]
    checkpoint = items.checkpoint_of(LANE, table.items[items.checkpoint_key(LANE)])
    assert (checkpoint.watermark, checkpoint.last, checkpoint.version) == (token(9), token(9), 6)
    assert (tally.settled, tally.commits) == (5, 3)
    assert value(table) == {1, 2, 3, 4, 6, 7, 8, 9}


def test_at_most_fold_max_are_settled_by_a_commit_and_none_is_left() -> None:
    table = folded(9)
    table.put(*map(delta, range(1, 8)))
    tally = settled(table, upto=9, fold_max=3)
    assert (tally.settled, tally.commits) == (7, 3)
    assert value(table) == {*range(1, 8), 9}


@pytest.mark.parametrize("page_size", [1, 2, 3])
def test_strays_beyond_a_page_are_settled_too(page_size: int) -> None:
    table = folded(3, 6, page_size=page_size)
    table.put(*map(delta, (0, 1, 2, 4, 5)))
    settled(table, upto=6)
    assert value(table) == set(range(7))


@pytest.mark.parametrize("page_size", [1, 1_000])
@pytest.mark.parametrize(
    ("since", "left"), [(None, set()), (0, {0}), (3, {0, 1, 3}), (4, {0, 1, 3, 4}), (9, {0, 1, 3, 4})]
)
def test_items_at_or_below_a_token_may_be_passed_over(page_size: int, since: int | None, left: set[int]) -> None:
    table = folded(2, 5, page_size=page_size)
    table.put(*map(delta, (0, 1, 3, 4)))
    token_since = None if since is None else token(since)
    table.run(settle(LANE, Tally(), token(5), fold_max=8, since=token_since))
    assert value(table) == {*range(6)} - left


def test_a_candidate_that_a_lagging_read_took_for_a_stray_is_dropped_by_the_confirmation() -> None:
    table = folded(2)
    table.put(delta(1))
    table.lag()
    settled(table)
    assert settled(table) == Tally()
    assert value(table) == {1, 2}
    table.lagging = None  # a settled delta that comes back later is listed
    table.drop(items.delta_key(delta(1)))
    table.put(delta(1))
    assert settled(table) == Tally()


def test_a_stray_without_a_cover_is_damage_and_nothing_is_written() -> None:
    table = folded(2)
    table.alter(items.checkpoint_key(LANE), watermark={"S": token(5)})
    table.put(delta(4))
    with refused(table, LaneDamaged, token(4)):
        settled(table, upto=5)


@pytest.mark.parametrize("gone", ["checkpoint", ""], ids=["the checkpoint", "all that was folded"])
def test_a_checkpoint_that_vanished_gives_up(gone: str) -> None:
    table = folded(2)
    table.put(delta(1))
    table.drop(*(key for key in table.items if key.pk == items.fold_pk(LANE) and gone in key.sk))
    with refused(table, GaveUp):
        settled(table)


def test_a_damaged_segment_is_named_and_nothing_is_settled() -> None:
    table = folded(2, 9)
    key = items.segment_key(LANE, token(2), 1)
    table.alter(key, entries={"B": b"short"})
    table.put(delta(1))
    with refused(table, DamagedItem) as raised:
        settled(table, upto=9)
    assert (raised.value.pk, raised.value.sk) == (key.pk, key.sk)


def test_a_stray_that_arrives_after_everything_was_cleaned_still_counts_once() -> None:
    home, away = two_regions()
    home.put(delta(2))
    compact_for_long(home, away, 3)
    assert items.delta_key(delta(2)) not in home.items
    home.put(delta(1), delta(2))
    compactor(home, away).compact(LANE.counter)
    assert value(home) == {1, 2}
