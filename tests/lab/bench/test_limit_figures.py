"""The figures of limited counters keep their goals, on fewer changes; and a sale asks little of other Regions."""

import pytest

from lab.bench import sale_figures
from lab.bench.figure import Figure
from lab.bench.limit_figures import again, held, in_groups, one_trip, read, refused, singly


@pytest.mark.parametrize(("rate", "late_ms", "goal"), [(10, 0, 1.2), (100, 0, 1.2), (100, 2_000, 1.7)])
def test_a_change_alone_costs_little_more_than_its_one_update(rate: int, late_ms: int, goal: float) -> None:
    assert 1 <= singly(rate, late_ms, changes=100) <= goal


def test_a_late_group_shares_its_update_and_what_it_files() -> None:
    assert 1 / 30 <= in_groups(500, 30, 2_000, groups=30) <= 0.4


def test_a_refusal_is_an_update_while_the_process_remembers_that_all_is_sold() -> None:
    assert 1 <= refused(changes=100) <= 1.5


@pytest.mark.parametrize("regions", [2, 3])
def test_a_sale_sells_every_seat_and_asks_other_regions_for_many_at_once(
    regions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, number in {"SEATS": 1_000, "BUYERS": 1_200, "SALE_MS": 6_000}.items():
        monkeypatch.setattr(sale_figures, name, number)
    sale = sale_figures.Sale(regions)
    sale.play()
    assert (sale.sold, sale.refused) == (1_000, 200)
    assert 0 < sale.until_sold_out <= 300


def test_a_retry_a_read_and_a_decision_here_are_one_request() -> None:
    assert (again(changes=5), read(), one_trip(changes=40)) == (1, 1, 1)


def test_a_hold_and_its_end_are_two_updates_where_few_are_open() -> None:
    assert 2 <= held(2, 1_000, holds=50) <= 2.4


def test_a_goal_that_is_missed_is_told() -> None:
    assert "MISSED" in str(Figure("one", 1.1, 1.0))
    assert "MISSED" not in str(Figure("one", 1.0, 1.0))
