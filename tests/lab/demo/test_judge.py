"""The judge of reads: what no set of changes can give is found, and what lacks a change that it had to hold."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.demo.judge import SUMS_MAX, Judge, Verdict, base4
from lab.demo.runners import Sight
from lab.events import WITNESS_CHANGES, Event, shop_day

AT = shop_day(1, 1)[0].at
WITNESS = "witness:00"


def judge_of(*changes: int, counter: str = "stock:a") -> Judge:
    return Judge([Event(counter, change, str(number), AT) for number, change in enumerate(changes)])


def of_a_witness(value: int, *held: int) -> Verdict:
    judge = judge_of(*(4**k for k in range(WITNESS_CHANGES)), counter=WITNESS)
    return judge.verdict(WITNESS, Sight(value), {(str(k), AT) for k in held})


@pytest.mark.parametrize("value", [0, 1, 4**27, 1 + 4 + 4**5])
def test_a_set_of_powers_of_four_is_a_true_sum(value: int) -> None:
    assert of_a_witness(value) is Verdict.TRUE


@pytest.mark.parametrize("value", [2, 4 + 4, 3 * 4**20, -1, 4**28])
def test_a_witness_change_counted_twice_is_found(value: int) -> None:
    assert of_a_witness(value) is Verdict.UNTRUE


def test_a_witness_change_that_is_lacking_is_found() -> None:
    assert of_a_witness(1 + 4**5, 0, 5) is Verdict.TRUE
    assert of_a_witness(1 + 4**5, 0, 4) is Verdict.SHORT
    assert of_a_witness(0, 27) is Verdict.SHORT


@given(
    st.lists(st.integers(-9, 9), min_size=1, max_size=6),
    st.integers(-60, 60),
    st.integers(0, 7),
    st.sets(st.integers(0, 5)),
)
def test_value_and_count_are_held_against_every_choice_of_changes(
    changes: list[int], value: int, count: int, held: set[int]
) -> None:
    held = {number for number in held if number < len(changes)}
    choices = [set(chosen) for chosen in itertools.combinations(range(len(changes)), count)]
    giving = [chosen for chosen in choices if sum(changes[n] for n in chosen) == value]
    expected = Verdict.UNTRUE if not giving else Verdict.TRUE if any(held <= c for c in giving) else Verdict.SHORT
    names = {(str(number), AT) for number in held}
    assert judge_of(*changes).verdict("stock:a", Sight(value, count), names) is expected


def test_of_many_changes_the_number_alone_is_judged() -> None:
    judge = judge_of(*[1] * (SUMS_MAX + 1))
    held = {(str(number), AT) for number in range(20)}
    assert judge.verdict("stock:a", Sight(-5, 20), held) is Verdict.TRUE
    assert judge.verdict("stock:a", Sight(0, 0), held) is Verdict.SHORT


@pytest.mark.parametrize(("value", "says"), [(0, "0" * 28), (4**27 + 2, f"1{'0' * 26}2"), (-1, f"-{'0' * 27}1")])
def test_a_witness_is_written_in_base_4(value: int, says: str) -> None:
    assert base4(value) == says
