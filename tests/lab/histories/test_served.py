"""Histories of the deployed service: right, repeatable, and wrong as soon as a mistake is planted."""

import pytest

from lab.histories.planting import ROOT, Mistake, catch
from lab.histories.served import play
from lab.histories.served_mistakes import SERVED
from simulator.choices import Drawn, Replayed


def test_some_histories_are_right_and_happen() -> None:
    played = [play(Drawn(seed)) for seed in range(2_000_000, 2_000_016)]
    assert [each.violations for each in played] == [[]] * 16
    assert sum(each.visits for each in played) > 10
    assert sum(each.rings for each in played) > 50
    assert sum(each.late for each in played) > 50
    assert any(each.purged for each in played)


def test_some_histories_of_thresholds_are_right_and_tell_of_crossings() -> None:
    played = [play(Drawn(seed), thresholds=True) for seed in range(3_000_000, 3_000_008)]
    assert [each.violations for each in played] == [[]] * 8
    assert sum(each.crossings for each in played) > 5


def test_a_seed_is_the_same_history_every_time_and_its_picks_are_too() -> None:
    first, second = Drawn(7), Drawn(7)
    assert play(first) == play(second) == play(Replayed(first.picks))


def test_a_planted_mistake_is_found() -> None:
    mistake = next(each for each in SERVED if each.name == "a visit that was stopped is done with")
    assert catch(mistake, histories=40).by


def test_a_mistake_in_telling_is_found_by_a_small_cast() -> None:
    mistake = next(each for each in SERVED if each.name == "the value is read before the crossings")
    assert catch(mistake).said.endswith("a crossing has not seen [1], which the one before it had")


@pytest.mark.parametrize("mistake", SERVED, ids=lambda mistake: mistake.name)
def test_a_mistake_fits_the_code(mistake: Mistake) -> None:
    for file, right in ((mistake.file, mistake.right), (mistake.file_too, mistake.right_too)):
        assert not file or (ROOT / file).read_text().count(right) == 1
