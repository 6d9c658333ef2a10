"""The judge of reads: what no set of changes can give is found."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo.designs import Sight
from demo.events import Event, shop_day
from demo.judge import Judge

AT = shop_day(1, 1)[0].at


def judge_of(*changes: int) -> Judge:
    return Judge([Event("stock:a", change, str(number), AT) for number, change in enumerate(changes)])


@pytest.mark.parametrize("value", [0, 1, 4**27, 1 + 4 + 4**5])
def test_a_set_of_powers_of_four_is_a_true_sum(value: int) -> None:
    assert judge_of(1).is_true_sum("witness:00", Sight(value))


@pytest.mark.parametrize("value", [2, 4 + 4, 3 * 4**20, -1, 4**28])
def test_a_witness_change_counted_twice_is_found(value: int) -> None:
    assert not judge_of(1).is_true_sum("witness:00", Sight(value))


def test_more_changes_than_there_are_is_found() -> None:
    assert not judge_of(5, 7).is_true_sum("stock:a", Sight(12, 3))


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=6), st.integers(-60, 60), st.integers(0, 7))
def test_value_and_count_are_held_against_every_choice_of_changes(changes: list[int], value: int, count: int) -> None:
    possible = any(sum(chosen) == value for chosen in itertools.combinations(changes, count))
    assert judge_of(*changes).is_true_sum("stock:a", Sight(value, count)) == possible
