"""The program `visit`: the order of its parts, and the settings that each gets."""

import pytest

from compactor.commit import past_the_limits
from compactor.report import Tally
from compactor.visit import visit
from ledger import items
from ledger.errors import LaneDamaged
from ledger.requests import DeleteMany, Transact
from tests.support import COUNTER, KEEP_MS, LANE, B, Region, compactor, delta, settings, two_regions, value


def noted() -> tuple[Region, Region]:
    """Delta 1 folded, noted, and old enough to be deleted; delta 2 in the tail."""
    home, away = two_regions()
    home.put(delta(1))
    compactor(home, away).compact(COUNTER)
    home.copy_to(away)
    compactor(home, away).compact(COUNTER)
    home.now_ms += KEEP_MS
    home.put(delta(2))
    home.asked.clear()
    return home, away


@pytest.mark.parametrize(("clean_first", "order"), [(True, [DeleteMany, Transact]), (False, [Transact, DeleteMany])])
def test_clean_comes_last_or_first(clean_first: bool, order: list[type]) -> None:
    home, away = noted()
    home.peers = {B: away}
    tally = Tally()
    home.run(visit(LANE, tally, settings(), clean_first=clean_first))
    assert [type(request) for request in home.asked if isinstance(request, DeleteMany | Transact)] == order
    assert (tally.folded, tally.cleaned) == (1, 1)
    assert value(home) == {1, 2}


@pytest.mark.parametrize("clean_first", [True, False])
def test_clean_asks_every_region_before_it_notes(clean_first: bool) -> None:
    home, away = two_regions()
    home.put(delta(1))
    compactor(home, away).compact(COUNTER)
    home.peers = {B: away}
    home.run(visit(LANE, tally := Tally(), settings(), clean_first=clean_first))
    assert tally.postponed_by == [B]
    home.copy_to(away)
    home.run(visit(LANE, tally := Tally(), settings(), clean_first=clean_first))
    assert not tally.postponed_by
    assert items.note_key(LANE) in home.items


@pytest.mark.parametrize("clean_first", [True, False])
def test_clean_may_be_left_out(clean_first: bool) -> None:
    home, _ = noted()
    home.run(visit(LANE, Tally(), settings(clean=False), clean_first=clean_first))
    assert not [request for request in home.asked if isinstance(request, DeleteMany)]


def test_a_lane_past_the_limits_says_what_to_do() -> None:
    error = past_the_limits(LANE, ValueError("version must be from 1"))
    assert isinstance(error, LaneDamaged)
    assert str(error) == (
        f"{LANE}: no checkpoint can follow what stands in the table: version must be from 1. Nothing was written. "
        "Look at the lane's checkpoint, note and segments, then rebuild it."
    )
