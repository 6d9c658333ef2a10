"""The judge of reads: what no set of changes can give is found, and what lacks a change that it had to hold."""

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.demo.judge import SUMS_MAX, Acknowledged, Judge, Verdict, base4
from lab.designs.design import Sight
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


HOME, OTHER = "eu-west-1", "us-east-1"
EVENT = Event("stock:a", 1, "k", AT)
Act = Callable[[Acknowledged], None]


def acknowledged(region: str) -> Act:
    """The event was first asked for at second 0, at home."""
    return lambda known: known.add(EVENT, 0.0, HOME, region)


def settled(region: str, began_s: float) -> Act:
    return lambda known: known.settled(region, began_s)


TAKEN, FAILED_OVER = acknowledged(HOME), acknowledged(OTHER)
CUT, HEALING = Acknowledged.cut, Acknowledged.healing


@pytest.mark.parametrize(
    ("acts", "region", "began_s", "ended_s", "demanded"),
    [
        pytest.param({}, HOME, 0.5, 0.6, False, id="not before it is acknowledged"),
        pytest.param({1.9: TAKEN}, HOME, 1.9, 2, True, id="in time: at home of every later read"),
        pytest.param({1.9: TAKEN}, HOME, 500, 501, True, id="in time: for ever"),
        pytest.param({1: TAKEN}, OTHER, 500, 501, False, id="not where another Region took it"),
        pytest.param({2: TAKEN}, HOME, 5, 6, False, id="late: not at once"),
        pytest.param({2: TAKEN, 6: settled(HOME, 1.9)}, HOME, 7, 8, False, id="late: not by an earlier compactor"),
        pytest.param({2: TAKEN, 8: settled(HOME, 2.1)}, HOME, 9, 10, True, id="late: once a later compactor is done"),
        pytest.param({1: TAKEN, 9: TAKEN}, HOME, 10, 11, True, id="the first acknowledgement counts"),
        pytest.param({1: FAILED_OVER}, OTHER, 1.1, 1.9, True, id="a fail-over: where it was taken"),
        pytest.param({1: FAILED_OVER}, OTHER, 1.1, 2.1, False, id="a fail-over: until its home may have got it late"),
        pytest.param({1: FAILED_OVER}, HOME, 1.1, 1.9, False, id="a fail-over: not at home"),
        pytest.param({0: CUT, 1: FAILED_OVER}, OTHER, 20, 30, True, id="cut: until it is healed"),
        pytest.param({0: CUT, 1: FAILED_OVER, 40: HEALING}, OTHER, 38, 39, True, id="cut: before it was healed"),
        pytest.param({0: CUT, 1: FAILED_OVER, 40: HEALING}, OTHER, 38, 41, False, id="cut: not after it was healed"),
        pytest.param({0: CUT, 1: FAILED_OVER, 1.1: HEALING}, OTHER, 1.2, 1.9, True, id="healed at once: the lateness"),
        pytest.param({0: CUT, 1: FAILED_OVER, 1.1: HEALING}, OTHER, 1.2, 2.1, False, id="healed at once: not longer"),
        pytest.param({0: CUT, 2.5: FAILED_OVER, 3.5: settled(OTHER, 3)}, OTHER, 4, 5, False, id="a late fail-over"),
    ],
)
def test_a_change_is_demanded(
    acts: dict[float, Act], region: str, began_s: float, ended_s: float, demanded: bool
) -> None:
    now_s = 0.0
    known = Acknowledged(2_000, now=lambda: now_s, wall=lambda: now_s)
    for now_s, act in acts.items():  # noqa: B007
        act(known)
    now_s = began_s
    assert any(ack.holds(ended_s) for ack in known.demanded(EVENT.counter, region)) == demanded
