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
from tests.support import COUNTER, KEEP_MS, LANE, NOW_MS, Region, compactor, delta, summed, token, two_regions, value


def folded(*numbers: int, page_size: int = 1_000) -> Region:
    """A lane in which each of these deltas was folded by a commit of its own."""
    home, away = two_regions(page_size=page_size)
    home.put(*map(delta, numbers))
    compactor(home, away, fold_max=1).compact(COUNTER)
    home.asked.clear()
    return home


def test_candidates_are_sought_cheaply_and_confirmed_by_begin_then_the_covering_segments_strongly() -> None:
    table = folded(2)
    table.put(delta(1), delta(3))
    tally = Tally()
    table.run(settle(LANE, tally, token(2), fold_max=8))
    checkpoint = Checkpoint(LANE, 4 + 16, 2, token(2), 2, token(2), NOW_MS)
    assert table.asked == [
        Query(items.delta_pk(LANE), None, token(2), None, False),
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
        table.run(settle(LANE, Tally(), token(9), fold_max=8))
    tally = Tally()
    table.asked.clear()
    table.run(settle(LANE, tally, token(9), fold_max=8))
    assert tally == Tally()
    assert not any(request.consistent for request in table.asked if isinstance(request, Query))  # nothing to confirm
    assert value(table) == {1, 2, 3, 9}
    under_hi = [request.upto for request in table.asked if isinstance(request, Query) and request.limit is None]
    assert under_hi.count(f"segment#{token(9)}$") == 3 * 4  # four pages under hi, the first of them by Limit 1


def test_each_range_is_settled_under_its_own_hi_and_the_watermark_stays() -> None:
    table = folded(3, 6, 9)
    table.put(*map(delta, (1, 2, 4, 7, 8)))
    tally = Tally()
    table.run(settle(LANE, tally, token(9), fold_max=8))
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
    tally = Tally()
    table.run(settle(LANE, tally, token(9), fold_max=3))
    assert (tally.settled, tally.commits) == (7, 3)
    assert value(table) == {*range(1, 8), 9}


@pytest.mark.parametrize("page_size", [1, 2, 3])
def test_strays_beyond_a_page_are_settled_too(page_size: int) -> None:
    table = folded(3, 6, page_size=page_size)
    table.put(*map(delta, (0, 1, 2, 4, 5)))
    table.run(settle(LANE, Tally(), token(6), fold_max=8))
    assert value(table) == set(range(7))


def test_a_stray_of_the_very_first_token_is_settled() -> None:
    table = folded(2)
    table.put(delta(0))
    table.run(settle(LANE, Tally(), token(2), fold_max=8))
    assert value(table) == {0, 2}


def test_a_candidate_that_a_lagging_read_took_for_a_stray_is_dropped_by_the_confirmation() -> None:
    table = folded(2)
    table.put(delta(1))
    table.lag()
    table.run(settle(LANE, Tally(), token(2), fold_max=8))
    tally = Tally()
    table.run(settle(LANE, tally, token(2), fold_max=8))
    assert tally == Tally()
    assert value(table) == {1, 2}


def test_a_settled_delta_that_comes_back_later_is_listed_and_nothing_is_committed() -> None:
    table = folded(2)
    table.put(delta(1))
    table.run(settle(LANE, Tally(), token(2), fold_max=8))
    table.drop(items.delta_key(delta(1)))
    table.put(delta(1))
    tally = Tally()
    table.run(settle(LANE, tally, token(2), fold_max=8))
    assert tally == Tally()


def test_a_stray_without_a_cover_is_damage_and_nothing_is_written() -> None:
    table = folded(2)
    table.store([{**table.items[items.checkpoint_key(LANE)], "watermark": {"S": token(5)}}])
    table.put(delta(4))
    before = dict(table.items)
    with pytest.raises(LaneDamaged, match=token(4)):
        table.run(settle(LANE, Tally(), token(5), fold_max=8))
    assert table.items == before


def test_a_checkpoint_that_vanished_gives_up() -> None:
    table = folded(2)
    table.put(delta(1))
    table.drop(items.checkpoint_key(LANE))
    with pytest.raises(GaveUp):
        table.run(settle(LANE, Tally(), token(2), fold_max=8))


def test_a_lane_emptied_meanwhile_gives_up() -> None:
    table = folded(2)
    table.put(delta(1))
    table.drop(*(key for key in table.items if key.pk.startswith("fold#")))
    with pytest.raises(GaveUp):
        table.run(settle(LANE, Tally(), token(2), fold_max=8))


def test_a_damaged_segment_is_named_and_nothing_is_settled() -> None:
    table = folded(2, 9)
    key = items.segment_key(LANE, token(2), 1)
    table.store([{"pk": {"S": key.pk}, "sk": {"S": key.sk}, "entries": {"B": b"short"}}])
    table.put(delta(1))
    with pytest.raises(DamagedItem) as raised:
        table.run(settle(LANE, Tally(), token(9), fold_max=8))
    assert (raised.value.pk, raised.value.sk) == (key.pk, key.sk)


def test_a_stray_that_arrives_after_everything_was_cleaned_still_counts_once() -> None:
    home, away = two_regions()
    home.put(delta(2))
    for _ in range(3):
        compactor(home, away).compact(COUNTER)
        home.copy_to(away)
        home.now_ms += KEEP_MS
    assert items.delta_key(delta(2)) not in home.items
    home.put(delta(1), delta(2))
    compactor(home, away).compact(COUNTER)
    assert value(home) == {1, 2}
