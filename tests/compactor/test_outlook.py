"""The program `outlook`: what a visit leaves to do, seen with a few reads."""

from dataclasses import replace

import pytest

from compactor.outlook import Outlook, outlook
from compactor.report import Tally
from compactor.visit import visit
from ledger import items
from ledger.errors import DamagedItem
from ledger.packing import pack_of
from ledger.requests import Get, Query, keyed
from tests.support import KEEP_MS, LANE, LATENESS_MS, NOW_MS, compactor, delta, settings, token, two_regions, value


def test_a_lane_without_deltas_has_nothing_left_and_a_damaged_checkpoint_is_not_guessed_at() -> None:
    home, _ = two_regions()
    assert home.run(outlook(LANE, settings())) == Outlook()
    assert home.asked == [Get(items.checkpoint_key(LANE)), Query(items.delta_pk(LANE), None, None, 1)]
    home.store([keyed(items.checkpoint_key(LANE))])
    with pytest.raises(DamagedItem):
        home.run(outlook(LANE, settings()))


@pytest.mark.parametrize("page_size", [1, 2, 1_000])
def test_the_next_fold_is_due_when_the_last_delta_it_needs_is_old_enough(page_size: int) -> None:
    home, _ = two_regions(page_size=page_size)
    home.put(delta(1), delta(2))
    assert home.run(outlook(LANE, settings(fold_min=3))) == Outlook(tail=2)
    home.put(delta(5), delta(9))
    home.asked.clear()
    assert home.run(outlook(LANE, settings(fold_min=3))) == Outlook(tail=3, fold_ms=5_000 + LATENESS_MS)
    assert sum(isinstance(request, Query) for request in home.asked) == -(-3 // page_size)


def test_folded_deltas_wait_for_clean_and_the_note_says_how_long() -> None:
    home, away = two_regions()
    home.put(delta(1))
    compactor(home, away).compact(LANE.counter)
    assert home.run(outlook(LANE, settings())) == Outlook(below=True)
    home.copy_to(away)
    compactor(home, away).compact(LANE.counter)
    home.asked.clear()
    assert home.run(outlook(LANE, settings())) == Outlook(below=True, noted_ms=NOW_MS)
    assert home.asked == [
        Get(items.checkpoint_key(LANE)),
        Query(items.delta_pk(LANE), f"{token(1)}$", None, 1),
        Query(items.delta_pk(LANE), None, f"{token(1)}$", 1),
        Get(items.note_key(LANE)),
    ]
    home.now_ms += KEEP_MS
    compactor(home, away).compact(LANE.counter)
    assert home.run(outlook(LANE, settings())) == Outlook()


@pytest.mark.parametrize("consistent", [True, False])
def test_a_stray_is_left_too_and_it_may_be_asked_cheaply(consistent: bool) -> None:
    home, away = two_regions()
    home.put(delta(2))
    compactor(home, away, clean=False).compact(LANE.counter)
    home.drop(items.delta_key(delta(2)))
    home.put(delta(1))
    home.asked.clear()
    assert home.run(outlook(LANE, settings(), consistent=consistent)).below
    asked = [request.consistent for request in home.asked if isinstance(request, Get | Query)]
    assert asked == [consistent] * 4


def test_a_tail_that_can_be_folded_is_told_whatever_lies_below() -> None:
    home, away = two_regions()
    home.put(delta(1))
    compactor(home, away).compact(LANE.counter)
    home.put(delta(5))
    assert home.run(outlook(LANE, settings())) == Outlook(1, 5_000 + LATENESS_MS, below=True)
    home.drop(items.delta_key(delta(1)))
    assert home.run(outlook(LANE, settings())) == Outlook(1, 5_000 + LATENESS_MS)


def test_a_stray_in_a_pack_that_reaches_over_the_watermark_is_left_and_what_is_listed_there_is_not() -> None:
    home, away = two_regions()
    home.put(delta(2), delta(4))
    compactor(home, away, fold_max=1, clean=False).compact(LANE.counter)  # two ranges

    def left_of(*numbers: int) -> Outlook:
        home.store([items.pack_item(pack_of(list(map(delta, numbers))))])
        home.asked.clear()
        return home.run(outlook(LANE, settings()))

    def looked_up() -> set[bool]:
        return {request.consistent for request in home.asked if isinstance(request, Query) and "fold" in request.pk}

    foldable = Outlook(1, 5_000 + LATENESS_MS)
    assert left_of(2, 5) == replace(foldable, below=True)  # the deltas wait for clean
    assert looked_up() == set()
    home.drop(items.delta_key(delta(2)), items.delta_key(delta(4)))
    assert left_of(2, 4, 5) == foldable
    assert left_of(2, 3, 5) == replace(foldable, below=True)
    assert looked_up() == {False}


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
