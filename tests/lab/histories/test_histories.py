"""Histories of the shipped code: right, repeatable, and wrong as soon as a mistake is planted."""

from dataclasses import replace

import pytest

from lab.histories import explore
from lab.histories.history import play
from lab.histories.mistakes import MISTAKES
from lab.histories.planting import ROOT, Mistake, catch
from lab.histories.shrink import told
from lab.histories.small_casts import a_retry_after_the_merge
from lab.histories.stage import Stage
from simulator.choices import Drawn, Replayed
from simulator.faults import mix
from simulator.trace import Trace


def test_a_hundred_histories_are_right_and_happen() -> None:
    played = [play(Drawn(seed)) for seed in range(1_000_000, 1_000_100)]
    assert [each.violations for each in played] == [[]] * 100
    assert sum(each.reads for each in played) > 1_000
    assert sum(each.deltas for each in played) > 300


def test_a_seed_is_the_same_history_every_time_and_its_picks_are_too() -> None:
    first, second = Drawn(7), Drawn(7)
    assert play(first) == play(second) == play(Replayed(first.picks))
    assert first.picks == second.picks


def test_a_history_can_be_read() -> None:
    choices = Drawn(3)
    play(choices)
    lines = told(choices.picks)
    assert any("checkpoint" in line for line in lines)
    assert not any(line.startswith("WRONG") for line in lines)


LONG = {
    "a_fail_over_against_a_fold",
    "a_fold_against_a_settle",
    "a_fold_of_two_commits_against_another",
    "a_group_against_one_of_its_changes_for_the_last_units",
    "a_history_against_two_adds_and_their_rolls",
    "a_history_elsewhere_while_two_rolls_replicate",
    "a_hold_that_is_over_is_freed_for_the_last_unit_against_its_capture_and_a_roll",
    "a_late_add_against_two_rolls",
    "a_late_change_is_named_while_a_fold_is_under_way",
    "a_read_elsewhere_through_a_fold_and_a_clean",
    "a_read_that_a_clean_overtakes",
    "a_stray_that_is_settled_while_an_older_version_is_cleaned",
    "a_unit_for_each_of_two_in_another_region_who_send_twice",
    "a_visit_a_retry_and_a_read",
    "a_wider_limit_against_two_who_want_more_than_there_is",
    "an_evaluation_and_a_change_whose_updates_are_sent_twice",
    "the_last_unit_in_two_regions",
    "the_last_unit_is_given_back_while_two_want_it",
    "two_cleans_and_a_retry_elsewhere",
    "two_compactors",
    "two_ends_of_a_hold_against_its_roll",
    "two_rolls_at_once_of_what_is_late_and_what_is_new",
    "two_who_free_a_filed_hold_that_is_over_against_its_capture",
}
"""Of more than 300 states: gone through by `make explore`, which CI runs, too."""


@pytest.mark.parametrize("name", [name for name in explore.EXPLORED if name not in LONG])
def test_every_order_of_a_small_cast_is_right(name: str) -> None:
    explored = explore.EXPLORED[name]()
    assert explored.trace == ()
    assert explored.states > 10
    assert explored.wrong == 0


def test_a_cast_that_is_too_long_for_a_test_is_one_of_those_that_are_explored() -> None:
    assert set(explore.EXPLORED) >= LONG


def test_the_obvious_design_goes_wrong_and_its_shortest_trace_says_how() -> None:
    explored = explore.explore(a_retry_after_the_merge, Stage)
    assert 0 < explored.wrong < explored.states
    assert explored.trace[-1] == "WRONG: at the end eu-west-1 reads 2: a delta is counted twice"
    assert [line.split("  ")[0] for line in explored.trace[:-1]] == [
        *["merge"] * 2,
        *["the world"] * 2,
        "the same add again",
    ]


def test_a_replica_that_is_made_again_with_half_of_a_commit_is_right_again_after_a_rebuild() -> None:
    """Also where compactors went on before it, so that segments overlap."""
    struck = 0
    for seed in range(120, 160):
        choices, trace = Drawn(seed), Trace()
        assert play(choices, replace(mix(choices), remade=True), trace).violations == []
        struck += any("is made again" in line for line in trace.lines)
    assert struck > 3


@pytest.mark.parametrize(
    "name",
    [
        "deltas deleted at fold",
        "settle moves the watermark",
        "no rebuild after a replica was made again",
        "rebuild keeps an orphan",
        "a retry goes to its own Region's lane",
    ],
)
def test_a_planted_mistake_is_found(name: str) -> None:
    mistake = next(mistake for mistake in MISTAKES if mistake.name == name)
    assert catch(mistake, histories=200).by


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_fits_the_code(mistake: Mistake) -> None:
    for file, right in ((mistake.file, mistake.right), (mistake.file_too, mistake.right_too)):
        assert not file or (ROOT / file).read_text().count(right) == 1
