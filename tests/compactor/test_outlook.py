"""The program `outlook`: what there is to do in a lane, seen with a few cheap reads."""

import pytest

from compactor.outlook import Outlook, outlook
from compactor.report import Tally
from compactor.visit import visit
from ledger import items
from ledger.errors import DamagedItem
from ledger.lane.add import pack_of
from ledger.requests import Get, Query, keyed
from ledger.values import Checkpoint
from tests.world import LANE, LATENESS_MS, NOW_MS, compactor, delta, settings, token, two_regions, value


def folded(upto: int) -> Checkpoint:
    """After one fold of these deltas."""
    return Checkpoint(LANE, sum(4**n for n in range(1, upto + 1)), upto, token(upto), 1, token(upto), NOW_MS)


def test_a_lane_without_deltas_costs_two_cheap_reads_and_a_damaged_checkpoint_is_not_guessed_at() -> None:
    home, _ = two_regions()
    for below in (False, True):
        home.asked.clear()
        expected = Outlook(None, below=False if below else None)
        assert home.run(outlook(LANE, settings(fold_min=7), below=below)) == expected
        assert home.asked == [Get(items.checkpoint_key(LANE), False), Query(items.delta_pk(LANE), None, None, 7, False)]
    home.store([keyed(items.checkpoint_key(LANE))])
    with pytest.raises(DamagedItem):
        home.run(outlook(LANE, settings()))


@pytest.mark.parametrize("page_size", [1, 2, 1_000])
def test_a_fold_is_due_when_the_last_delta_it_needs_is_old_enough(page_size: int) -> None:
    home, _ = two_regions(page_size=page_size)
    home.put(delta(1), delta(2))
    assert home.run(outlook(LANE, settings(fold_min=3))) == Outlook(None, tail=2)
    home.put(delta(5), delta(9))
    home.asked.clear()
    assert home.run(outlook(LANE, settings(fold_min=3))) == Outlook(None, tail=3, fold_ms=5_000 + LATENESS_MS)
    assert sum(isinstance(request, Query) for request in home.asked) == -(-3 // page_size)


def test_a_token_that_stands_in_several_items_counts_once_and_those_of_a_pack_each() -> None:
    home, _ = two_regions()
    home.put(delta(1), delta(2))
    home.store([items.pack_item(pack_of([delta(1), delta(2)]))])
    assert home.run(outlook(LANE, settings(fold_min=3))).tail == 2
    home.store([items.pack_item(pack_of([delta(n) for n in (1, 2, 3, 4)]))])
    assert home.run(outlook(LANE, settings(fold_min=3))) == Outlook(None, tail=3, fold_ms=3_000 + LATENESS_MS)


def test_what_is_folded_waits_below_the_watermark_where_that_is_asked() -> None:
    home, away = two_regions()
    home.put(delta(1))
    compactor(home, away).compact(LANE.counter)
    assert home.run(outlook(LANE, settings())) == Outlook(folded(1))
    home.asked.clear()
    assert home.run(outlook(LANE, settings(), below=True)) == Outlook(folded(1), below=True)
    assert home.asked == [
        Get(items.checkpoint_key(LANE), False),
        Query(items.delta_pk(LANE), f"{token(1)}$", None, 1, False),
        Query(items.delta_pk(LANE), None, f"{token(1)}$", 1, False),
    ]
    home.drop(items.delta_key(delta(1)))
    assert home.run(outlook(LANE, settings(), below=True)) == Outlook(folded(1), below=False)


def test_below_a_watermark_that_changes_may_still_come_in_time_for_it_looks_unasked() -> None:
    home, away = two_regions()
    home.put(delta(1))
    compactor(home, away).compact(LANE.counter)
    in_time_ms = 1_000 + LATENESS_MS
    assert home.run(outlook(LANE, settings(), now_ms=in_time_ms)) == Outlook(folded(1))
    assert home.run(outlook(LANE, settings(), now_ms=in_time_ms - 1)) == Outlook(folded(1), below=True)


def test_a_stray_in_a_pack_that_reaches_over_the_watermark_is_below_and_what_is_listed_there_is_not() -> None:
    home, away = two_regions()
    home.put(delta(2), delta(4))
    compactor(home, away, fold_max=1, clean=False).compact(LANE.counter)  # two ranges
    home.drop(items.delta_key(delta(2)), items.delta_key(delta(4)))

    def below(*numbers: int) -> bool | None:
        home.store([items.pack_item(pack_of(list(map(delta, numbers))))])
        home.asked.clear()
        return home.run(outlook(LANE, settings(), below=True)).below

    assert below(2, 4, 5) is False
    assert below(2, 3, 5) is True
    assert not any(request.consistent for request in home.asked if isinstance(request, Get | Query))


def test_a_visit_is_bounded_in_its_commits_and_strays_do_not_wait_for_the_tail() -> None:
    home, _ = two_regions()
    home.put(*map(delta, range(10, 13)))
    home.run(visit(LANE, Tally(), settings(fold_max=1)))  # three ranges
    home.put(delta(1), delta(2), *map(delta, range(20, 25)))
    tally = Tally()
    home.run(visit(LANE, tally, settings(fold_max=1), commits_max=1))
    assert (tally.folded, tally.settled, tally.commits, tally.unsettled) == (1, 1, 2, True)
    for _ in range(4):
        home.run(visit(LANE, tally := Tally(), settings(fold_max=1), commits_max=1))
    assert value(home) == {1, 2, *range(10, 13), *range(20, 25)}
    home.run(visit(LANE, tally := Tally(), settings(fold_max=1), commits_max=1))
    assert (tally.commits, tally.unsettled) == (0, False)
