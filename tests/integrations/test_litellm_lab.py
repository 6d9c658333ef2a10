"""The lab's figures of budgets, smaller: nothing passed, nothing held at the end, beside a tracker that is passed."""

from lab.budgets import CAP, ENDS, measure


def test_no_budget_is_passed_under_faults_while_a_naive_tracker_is_passed_in_all() -> None:
    figures = measure(2, seed=1)
    assert figures.is_right
    assert 0 < figures.spent <= 2 * CAP
    assert sum(figures.outcomes.values()) == 2 * len(ENDS)
    assert all(spent > CAP for spent in figures.naive.values())
    assert len(figures.naive) == 2
