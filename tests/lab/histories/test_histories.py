"""Histories of the shipped code: right, repeatable, and wrong as soon as a mistake is planted."""

from collections import Counter
from dataclasses import replace

import pytest

from lab.histories import explore, limited_restores
from lab.histories.kinds import KINDS, lines
from lab.histories.mistakes import LANES, LIMITS, ROOT, SERVICE, Mistake, catch
from simulator.choices import Drawn, Replayed
from simulator.faults import mix
from simulator.trace import Trace

FIRST = 1_000_000
MISTAKES = {mistake.name: mistake for mistake in (*LANES, *LIMITS, *SERVICE)}


def played(kind: str, times: int, first: int = FIRST) -> Counter[str]:
    """What happened in so many histories, which are right."""
    happened = Counter[str]()
    for seed in range(first, first + times):
        history = KINDS[kind].play(Drawn(seed))
        assert history.violations == [], seed
        happened += history.counts
    return happened


def test_histories_of_lanes_are_right_and_happen() -> None:
    happened = played("lanes", 60)
    assert happened["reads"] > 600
    assert happened["deltas"] > 180


def test_histories_of_limits_are_right_and_everything_happens_in_them() -> None:
    happened = played("limits", 40)
    assert min(happened[what] for what in ("counted", "held", "refused", "released", "expired")) > 5
    assert happened["refused from memory"] > 0


def test_every_limited_counter_that_is_restored_is_right_after_a_rebuild(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited_restores, "ONE_OF", 1)
    happened = played("limits", 8, first=9)
    assert min(happened[what] for what in ("restored", "restored beyond", "tokens lost", "gates gone")) > 0


def test_histories_of_the_service_are_right_and_happen() -> None:
    happened = played("service", 16, first=2_000_000)
    assert happened["visits"] > 10
    assert min(happened["rings"], happened["late"]) > 50
    assert happened["purged"] > 0
    assert played("thresholds", 8, first=3_000_000)["crossings"] > 5


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_is_the_same_history_every_time_and_its_picks_are_too(kind: str) -> None:
    play, first, second = KINDS[kind].play, Drawn(7), Drawn(7)
    assert play(first) == play(second) == play(Replayed(first.picks))
    assert first.picks == second.picks


@pytest.mark.parametrize(("kind", "what"), [("lanes", "checkpoint"), ("limits", "gate#")])
def test_a_history_can_be_read(kind: str, what: str) -> None:
    choices = Drawn(3)
    KINDS[kind].play(choices)
    shown = lines(kind, choices.picks)
    assert any(what in line for line in shown)
    assert not any(line.startswith("WRONG") for line in shown)


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
    "a_process_elsewhere_sets_a_wider_limit_and_sells_what_came_with_it",
    "a_read_elsewhere_through_a_fold_and_a_clean",
    "a_read_that_a_clean_overtakes",
    "a_stray_that_is_settled_while_an_older_version_is_cleaned",
    "a_unit_for_each_of_two_in_another_region_who_send_twice",
    "a_visit_a_retry_and_a_read",
    "a_wider_limit_against_two_who_want_more_than_there_is",
    "an_evaluation_and_a_change_whose_updates_are_sent_twice",
    "the_first_rights_are_opened_beside_a_change_of_another_lane",
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
    explored = explore.explore(name)
    assert explored.trace == ()
    assert explored.states > 10
    assert explored.wrong == 0


def test_every_cast_that_is_too_long_for_a_test_is_one_of_those_that_are_explored() -> None:
    assert set(explore.EXPLORED) >= LONG
    assert len(explore.EXPLORED) == 65


def test_the_obvious_design_goes_wrong_and_its_shortest_trace_says_how() -> None:
    explored = explore.explore("a_retry_after_the_merge")
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
        assert KINDS["lanes"].play(choices, replace(mix(choices), remade=True), trace).violations == []
        struck += any("is made again" in line for line in trace.lines)
    assert struck > 3


def test_every_mistake_fits_its_file_and_what_finds_it_is_there() -> None:
    assert (len(LANES), len(LIMITS), len(SERVICE)) == (50, 77, 27)
    assert len(MISTAKES) == 154
    for mistake in MISTAKES.values():
        code: dict[str, str] = {}
        for place in mistake.places:
            code[place.file] = place.planted(code.get(place.file) or (ROOT / place.file).read_text("utf-8"))
        assert mistake.at.isdecimal() or mistake.at in explore.EXPLORED, mistake.name


SOON = {
    "deltas deleted at fold": "",
    "rebuild keeps an orphan": "",
    "a retry goes to its own Region's lane": "",
    "settle ignores packs that reach above the watermark": "",
    "a tighter limit takes nothing": "",
    "low is not looked at": "",
    "rebuilt: the version stays": "",
    "a filed hold ends though the gate knows it": "",
    "a visit that was stopped is done with": "",
    "the value is read before the crossings": "has not seen [1], which the one before it had",
}
"""What finds them says so."""


@pytest.mark.parametrize("mistake", [MISTAKES[name] for name in SOON], ids=lambda mistake: mistake.name)
def test_a_planted_mistake_is_found(mistake: Mistake) -> None:
    caught = catch(mistake, histories=200)
    assert caught.by
    assert SOON[mistake.name] in caught.said
