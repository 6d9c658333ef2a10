"""Every order of the small casts is right, and of the obvious design is not."""

import subprocess
import sys

import pytest

from lab.histories import explore
from lab.histories.casts.lane_steps import LaneSteps

SHORT = (
    "one_read_against_two_folds",
    "a_rebuild_while_the_first_commit_lands",
    "a_pack_that_reaches_over_the_watermark_among_a_clean_and_a_read_elsewhere",
    "a_retry_and_an_add_against_a_roll",
    "a_process_frees_a_hold_and_sells_the_rest_of_it_elsewhere",
    "a_message_of_a_late_change_is_stopped_and_goes_on",
    "a_stray_is_settled_beside_an_evaluation",
)
"""Of each stage some; `make explore`, which CI runs, too, goes through all."""


@pytest.mark.parametrize("name", SHORT)
def test_every_order_of_a_small_cast_is_right(name: str) -> None:
    explored = explore.explore(name)
    assert explored.trace == ()
    assert explored.states > 10
    assert explored.wrong == 0


def test_no_cast_is_lost() -> None:
    assert len(explore.EXPLORED) == 109


def test_the_obvious_design_goes_wrong_and_its_trace_says_how() -> None:
    explored = explore.explore("a_retry_after_the_merge")
    assert 0 < explored.wrong < explored.states
    assert explored.trace[-1] == "WRONG: at the end eu-west-1 reads 2: a delta is counted twice"
    assert [line.split("  ")[0] for line in explored.trace[:-1]] == [
        *["merge"] * 2,
        *["the world"] * 2,
        "the same add again",
    ]


@pytest.mark.parametrize("name", ["two_regions_merge", "a_retry_after_the_merge"])
def test_one_judgement_stands_for_states_judged_alike(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    explored = explore.explore(name)
    monkeypatch.setattr(LaneSteps, "decides", lambda self: None)
    assert explore.explore(name) == explored


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("a_stray_is_settled_beside_an_evaluation", 0, "1 casts, "),
        ("nonsense", 2, "no such cast: nonsense"),
    ],
)
def test_one_cast_is_played_by_its_name(name: str, code: int, says: str) -> None:
    command = (sys.executable, "-m", "lab.histories.explore", name)
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, says in ran.stdout + ran.stderr) == (code, True)
