"""The figures of limited counters keep their goals, on fewer changes; that of a refusal is what it is."""

import pytest

from lab.bench.limit_figures import Figure, again, held, in_groups, one_trip, read, refused, singly


@pytest.mark.parametrize(("rate", "late_ms", "goal"), [(10, 0, 1.2), (100, 0, 1.2), (100, 2_000, 1.7)])
def test_a_change_alone_costs_little_more_than_its_one_update(rate: int, late_ms: int, goal: float) -> None:
    assert 1 <= singly(rate, late_ms, changes=100) <= goal


def test_a_late_group_shares_its_update_and_what_it_files() -> None:
    assert 1 / 30 <= in_groups(500, 30, 2_000, groups=30) <= 0.4


def test_a_refusal_is_two_updates_and_does_not_grow_dearer() -> None:
    """The first finds too little, the second says so; and every so often they are filed."""
    assert 2 <= refused(changes=100) <= 2.5


def test_a_retry_a_read_and_a_decision_here_are_one_request() -> None:
    assert (again(changes=5), read(), one_trip(changes=40)) == (1, 1, 1)


def test_a_hold_and_its_end_are_two_updates_where_few_are_open() -> None:
    assert 2 <= held(2, 1_000, holds=50) <= 2.4


def test_a_goal_that_is_missed_is_told() -> None:
    assert "MISSED" in str(Figure("one", 1.1, 1.0))
    assert "MISSED" not in str(Figure("one", 1.0, 1.0))
