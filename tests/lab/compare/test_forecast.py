"""The forecast: its hand arithmetic, and that the page has what it prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.compare.forecast import ADD, DESIGNS, MARKER, OURS, TOKEN, Design, assumptions, at, reads_per_s, report

PAGE = (Path(__file__).parents[3] / "docs" / "comparison.md").read_text()
RATES = st.floats(0.01, 2e6)


def test_the_page_has_what_the_forecast_prints() -> None:
    printed = "\n".join(report())
    assert assumptions() in printed
    assert f"```text\n{printed}\n```" in PAGE, "put in what `python -m lab.compare.forecast` prints"
    assert f"ours takes about {at(100).a_read:,.0f}, by the" in PAGE


@pytest.mark.parametrize("design", DESIGNS)
@given(rate=RATES, regions=st.integers(1, 5))
def test_one_shard_fewer_than_needed_is_too_few(design: Design, rate: float, regions: int) -> None:
    partitions = regions if design.lanes_by_region else 1
    needed = design.shards_needed(rate, regions)
    assert needed * partitions * 1_000 >= rate * design.hot_units * (1 - 1e-9)
    assert needed == 1 or (needed - 1) * partitions * 1_000 < rate * design.hot_units


def test_a_region_adds_lanes_to_ours_and_nothing_to_a_single_item() -> None:
    assert [OURS.shards_needed(10_000, regions) for regions in (1, 2, 3)] == [20, 10, 7]
    assert [ADD.shards_needed(10_000, regions) for regions in (1, 2, 3)] == [10, 10, 10]


def test_a_million_changes_are_worked_out_by_hand() -> None:
    assert [ADD.dollars(100, regions) for regions in (1, 2, 3)] == [0.625, 1.25, 1.875]
    assert [each.dollars(100) for each in (TOKEN, MARKER)] == [1.25, 2.5]
    assert OURS.dollars(100) == pytest.approx(2.05 * 0.625 + 0.27 * 0.125, rel=0.001)


def test_a_partition_serves_as_many_reads_as_its_units_allow() -> None:
    assert reads_per_s(at(500)) == pytest.approx(3_000 / (40 * 500 * 69 / 4096), rel=0.01)
