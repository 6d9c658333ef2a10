"""One lane, against what the README measured, hand arithmetic and a second-by-second simulation."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.compare import lane
from bench.compare.partitions import SETTINGS, WRITE_UNITS

MOST = WRITE_UNITS / lane.HOT_UNITS


def load(rate: float) -> lane.Load:
    return lane.load(rate, SETTINGS, WRITE_UNITS)


def test_a_change_costs_what_the_readme_says() -> None:
    assert load(500).write_units / 500 == pytest.approx(2.05, abs=0.005)  # hot
    assert load(0.01).write_units / 0.01 == pytest.approx(2.15, abs=0.005)  # only fold_min are folded at once
    assert load(10).read_units / 10 < 0.3  # "some tenths of a unit"


def test_a_commit_costs_2_and_2_for_each_kb_of_its_segment() -> None:
    kilobytes = math.ceil((lane.SEGMENT_BYTES + 24 * 8_000) / 1024)
    assert lane.commit_units(8_000, SETTINGS) == 2 + 2 * kilobytes == 378
    assert lane.commit_units(16_032, SETTINGS) == 2 * 378 + 4
    assert lane.commit_units(0, SETTINGS) == 0


def test_a_lane_is_folded_every_minute_or_when_fold_min_deltas_wait() -> None:
    assert load(10).fold_s == 60
    assert load(10).tail == 10 * (10 + 30)
    assert load(0.1).fold_s == 320


def test_the_commits_never_fill_their_partition_before_the_deltas_fill_theirs() -> None:
    assert lane.commit_units(MOST * 60, SETTINGS) / 60 < WRITE_UNITS / 10


def test_a_core_is_slower_than_the_partition_of_the_segments() -> None:
    assert WRITE_UNITS / 378 * 8_000 > lane.FOLD_DELTAS_PER_S == lane.fold_per_s(SETTINGS, WRITE_UNITS)
    assert lane.fold_per_s(SETTINGS, WRITE_UNITS / 2) < lane.FOLD_DELTAS_PER_S


def test_a_compactor_that_was_away_for_an_hour_catches_up_in_minutes() -> None:
    assert lane.catch_up_s(3_600 * MOST, MOST, SETTINGS, WRITE_UNITS) == pytest.approx(92.3, abs=0.1)
    assert lane.catch_up_s(1, lane.FOLD_DELTAS_PER_S, SETTINGS, WRITE_UNITS) == math.inf


def full_seconds(rate: int, rounds: int) -> tuple[int, int]:
    """(seconds in which the partition was full, deltas that are still to delete): adds first, deletes take the rest."""
    clean_every_s = int(SETTINGS.keep_ms / 1000 + lane.VISIT_S)
    full, left = 0, 0
    for second in range(rounds * clean_every_s):
        if second % clean_every_s == 0:
            left += rate * clean_every_s
        deleted = min(left, WRITE_UNITS - rate)
        left -= deleted
        full += rate + deleted == WRITE_UNITS
    return full, left


@pytest.mark.parametrize("rate", [10, 50, 100, 250, 400, 500])
def test_a_partition_is_full_as_long_as_when_it_is_played_second_by_second(rate: int) -> None:
    full, left = full_seconds(rate, rounds=10)
    assert left == 0
    assert full / (10 * 660) == pytest.approx(load(rate).full, abs=1 / 660)


def test_above_half_of_the_units_the_deletes_are_never_done() -> None:
    assert full_seconds(510, rounds=20)[1] > full_seconds(510, rounds=10)[1] > 0
    with pytest.raises(ValueError, match="510"):
        load(510)


@given(st.floats(1e-6, MOST), st.floats(1e-6, MOST))
def test_a_higher_rate_never_costs_less(one: float, other: float) -> None:
    slow, fast = sorted((one, other))
    almost = 1 + 1e-9
    assert load(slow).write_units <= load(fast).write_units * almost
    assert load(slow).read_units <= load(fast).read_units * almost
    assert load(slow).full <= load(fast).full * almost


@given(st.floats(1e-6, MOST))
def test_a_tail_is_on_average_shorter_than_at_its_longest(rate: float) -> None:
    assert 0 < load(rate).tail <= load(rate).tail_most
