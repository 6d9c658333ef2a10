"""What must hold of the model whatever the rate, and its hand arithmetic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.compare import lane
from bench.compare.partitions import (
    ADD,
    DESIGNS,
    MARKER,
    OURS,
    SETTINGS,
    TOKEN,
    WRITE_UNITS,
    Design,
    assumptions,
    predict,
    reads_per_s,
    shards_needed,
    single_item,
)

RATES = st.floats(0.01, 2e6)
SHARDS = st.integers(1, 2_000)
REGIONS = st.integers(1, 5)
ANY = st.sampled_from(DESIGNS)
ALMOST = 1 + 1e-9


@given(ANY, RATES, SHARDS, SHARDS, REGIONS)
def test_more_shards_never_throttle_more(design: Design, rate: float, one: int, other: int, regions: int) -> None:
    few, many = sorted((one, other))
    assert predict(design, rate, many, regions).throttled <= predict(design, rate, few, regions).throttled


@given(ANY, RATES, RATES, SHARDS, REGIONS)
def test_a_higher_rate_never_costs_less_or_throttles_less(
    design: Design, one: float, other: float, shards: int, regions: int
) -> None:
    slow, fast = (predict(design, rate, shards, regions) for rate in sorted((one, other)))
    assert slow.dollars_a_day <= fast.dollars_a_day * ALMOST
    assert slow.throttled <= fast.throttled + 1e-12
    assert slow.lag_s <= fast.lag_s + 1e-9
    assert slow.stored <= fast.stored * ALMOST


@given(ANY, RATES, SHARDS, REGIONS)
def test_a_further_region_never_costs_less(design: Design, rate: float, shards: int, regions: int) -> None:
    here, everywhere = predict(design, rate, shards, regions), predict(design, rate, shards, regions + 1)
    assert here.dollars_a_day <= everywhere.dollars_a_day * ALMOST
    assert everywhere.throttled <= here.throttled


@given(ANY, SHARDS, REGIONS)
def test_at_ten_a_second_nothing_throttles(design: Design, shards: int, regions: int) -> None:
    forecast = predict(design, 10, shards, regions)
    assert (forecast.stored, forecast.throttled, forecast.lag_s, forecast.warm_up_minutes) == (10, 0, 0, 0)


@pytest.mark.parametrize(("design", "most"), [(OURS, 500), (ADD, 1_000), (TOKEN, 500), (MARKER, 500)])
def test_one_lane_or_item_saturates_where_its_partition_does(design: Design, most: int) -> None:
    assert predict(design, most).throttled == 0
    assert predict(design, most + 1).throttled > 0
    assert predict(design, 10 * most).stored == most
    assert predict(design, 10 * most).throttled == 0.9
    assert predict(design, 10 * most).lag_s == 0.9 * 3_600


def test_a_region_adds_lanes_to_ours_and_nothing_to_a_single_item() -> None:
    assert [predict(OURS, 1e6, 4, regions).stored for regions in (1, 2, 3)] == [2_000, 4_000, 6_000]
    assert [predict(ADD, 1e6, 4, regions).stored for regions in (1, 2, 3)] == [4_000, 4_000, 4_000]


def test_a_day_of_plain_adds_is_worked_out_by_hand() -> None:
    a_day = 100 * 86_400 / 1e6 * 0.625
    assert predict(ADD, 100).dollars_a_day == pytest.approx(a_day)
    assert predict(ADD, 100, regions=3).dollars_a_day == pytest.approx(3 * a_day)
    assert predict(TOKEN, 100).dollars_a_day == pytest.approx(2 * a_day)
    assert predict(MARKER, 100).dollars_a_day == pytest.approx(4 * a_day)
    assert predict(OURS, 100).dollars_a_day == pytest.approx(a_day * (2.047 + 0.233 * 0.2), rel=0.001)


@pytest.mark.parametrize("design", DESIGNS)
@given(rate=RATES, regions=REGIONS)
def test_the_shards_that_are_needed_suffice_and_one_less_does_not(design: Design, rate: float, regions: int) -> None:
    needed = shards_needed(design, rate, regions)
    assert predict(design, rate, needed, regions).throttled < 1e-9
    if needed > 1:
        assert predict(design, rate, needed - 1, regions).throttled > 0


def test_the_shards_for_a_million_a_second() -> None:
    assert [shards_needed(OURS, 1e6, regions) for regions in (1, 2, 3)] == [2_000, 1_000, 667]
    assert [shards_needed(ADD, 1e6, regions) for regions in (1, 2, 3)] == [1_000, 1_000, 1_000]


def test_a_new_table_doubles_every_half_hour() -> None:
    assert [predict(ADD, rate, 10_000).warm_up_minutes for rate in (4_000, 4_001, 8_000, 1e6)] == [0, 30, 30, 240]
    assert [predict(ADD, rate, 10_000).over_quota for rate in (40_000, 40_001)] == [False, True]


def test_items_that_are_not_hot_cost_but_do_not_throttle() -> None:
    spread = single_item("spread", 1, other_units=9)
    assert predict(spread, 1_000).throttled == 0
    assert predict(spread, 1_000).table_units == 10_000


def test_a_hot_lane_serves_few_strong_reads_because_each_sums_its_tail() -> None:
    full, idle = (lane.load(rate, SETTINGS, WRITE_UNITS) for rate in (500, 0.1))
    tail_kilobytes = 500 * (10 + 30) * 69 / 1024
    assert reads_per_s(full) == pytest.approx(3_000 / (tail_kilobytes / 4))
    assert reads_per_s(idle) == 3_000


def test_what_cannot_be_is_refused() -> None:
    for rate, shards, regions in ((0, 1, 1), (1, 0, 1), (1, 1, 0), (float("nan"), 1, 1)):
        with pytest.raises(ValueError, match="rate="):
            predict(OURS, rate, shards, regions)


def test_the_assumptions_can_be_printed() -> None:
    lines = assumptions().splitlines()
    assert len(lines) > 10
    assert all(line.startswith(("- ", "  ")) for line in lines)
