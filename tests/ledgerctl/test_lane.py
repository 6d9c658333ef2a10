"""The model of a lane, against rings, looks and folds that are drawn one by one, the service's constants, and hand
arithmetic."""

import math
import random
import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.entries import ENTRY
from ledger.settings import Settings
from ledgerctl import finding, sizes
from ledgerctl.finding import RING_EVERY_S, RING_SLACK_S
from ledgerctl.lane import changes_max, load

ROOT = Path(__file__).parents[2]
SETTINGS = Settings(table="any", region="eu-west-1")
KEPT = Settings(table="any", region="eu-west-1", clean=False)
CHANGES_MAX = changes_max(SETTINGS)
RATES = st.floats(1e-7, CHANGES_MAX)


@dataclass
class Drawn:
    """What became of a lane whose changes were drawn one by one."""

    changes: int
    looks: int
    folds: list[int]
    tail: float  # on average over time


def drawn(rate: float, fold_min: int, pack: int, changes: int, lateness_s: float = 10.0) -> Drawn:
    """A lane under the service's rules: an item rings by lot, a message waits, a look folds what is old enough."""
    lot = random.Random(1)
    at: list[float] = []
    now = 0.0
    while len(at) < changes // pack:
        now += lot.expovariate(rate / pack)
        at.append(now)
    spared_until = -1.0
    messages: list[float] = []
    for each in at:
        if lot.random() < pack / fold_min and each >= spared_until:
            messages.append(each + RING_EVERY_S + RING_SLACK_S + lateness_s)
            spared_until = each + RING_EVERY_S
    folds: list[int] = []
    folded, tail = 0, 0.0
    for message, following in pairwise([*messages, now]):
        old = bisect_right(at, message - lateness_s)
        if (old - folded) * pack >= fold_min:
            folds.append((old - folded) * pack)
            folded = old
        left = (bisect_right(at, message) - folded) * pack
        tail += (left + rate * (following - message) / 2) * (following - message)
    return Drawn(len(at) * pack, len(messages), folds, tail / (now - messages[0]))


@pytest.mark.parametrize(
    ("rate", "pack"), [(1e-4, 1), (0.05, 1), (0.2, 1), (1, 1), (30, 1), (0.3, 10), (100, 38)], ids=str
)
def test_looks_folds_and_tails_are_those_of_changes_that_are_drawn_one_by_one(rate: float, pack: int) -> None:
    seen = drawn(rate, 32, pack, 60_000 * pack if rate < 10 else 400_000)
    model = finding.rounds(rate, 32, pack)
    assert seen.looks / seen.changes == pytest.approx(model.looks / model.folded, rel=0.06)
    assert sum(seen.folds) / len(seen.folds) == pytest.approx(model.folded, rel=0.06)
    assert seen.tail == pytest.approx(model.tail + rate * 10, rel=0.06)
    bytes_of = [sizes.SEGMENT_BYTES + ENTRY.size * fold for fold in seen.folds]
    if max(seen.folds) <= 8_000:
        commits = sum(2 + 2 * math.ceil(each / 1024) for each in bytes_of) / seen.changes
        of_model = load(rate, SETTINGS, pack=pack)
        note = 1 / (model.fold_s * math.ceil(600 / model.fold_s))
        assert commits == pytest.approx((of_model.commit_units - note) / rate, rel=0.06)


def test_the_constants_are_those_of_the_service() -> None:
    serverless = (ROOT / "serverless.yml").read_text()
    for name, value in (("ringEverySeconds", RING_EVERY_S), ("sweepHours", finding.SWEEP_S // 3600)):
        said = re.search(rf"{name}: (\d+)", serverless)
        assert said is None or int(said[1]) == value
    assert f"VERIFY_ONE_IN = {finding.VERIFY_ONE_IN}\n" in (ROOT / "service" / "sweep" / "main.py").read_text()


def test_a_change_costs_what_the_readme_says() -> None:
    of = load(100, SETTINGS)
    assert of.write_units / 100 == pytest.approx(2.05, abs=0.005)  # hot
    assert load(100, KEPT).write_units / 100 == pytest.approx(1.05, abs=0.005)
    cold = load(1e-4, SETTINGS)
    assert cold.write_units / 1e-4 == pytest.approx(2.11, abs=0.01)  # some 63 are folded at once
    assert load(1e-4, SETTINGS, ever_folds=False).write_units == 1e-4


def test_finding_work_costs_less_than_two_hundredths_of_a_change() -> None:
    """10,000 changes a second over a million lanes: dollars of functions, queue and looks, against a change's."""
    rate, month = 0.01, 730 * 3600
    of = load(rate, SETTINGS)
    looks = finding.rounds(rate, 32).looks / finding.rounds(rate, 32).fold_s
    dollars = finding.dollars(1e6 * rate * month, 1e6 * looks * month, month, 1) + 1e6 * looks * month * 0.125e-6
    units = dollars / (1e6 * rate * month * 0.625e-6)
    assert 0.01 < units < 0.03
    assert units < 0.015 * of.write_units / rate


def test_an_idle_service_costs_its_polling() -> None:
    month = 730 * 3600
    assert finding.dollars(0, 0, month, 1) == pytest.approx(15 * 60 * 730 * 0.40e-6)
    assert finding.dollars(0, 0, month, 3) == pytest.approx(3 * finding.dollars(0, 0, month, 1))


def test_a_lane_in_full_packs_takes_ten_thousand_changes_a_second_at_a_tenth_of_a_unit_each() -> None:
    assert changes_max(SETTINGS) == 500  # a put and a delete
    assert changes_max(KEPT) == 1_000
    assert changes_max(SETTINGS, pack=38) == 1_000 * 38 // 2  # a KB
    assert changes_max(SETTINGS, pack=39) == 1_000 * 39 // 4
    assert changes_max(SETTINGS, pack=400) == 1_000 * 400 // 20
    assert changes_max(SETTINGS, pack=81) == 1_000 * 81 // 4
    assert load(10_000, SETTINGS, pack=38).write_units / 10_000 == pytest.approx(0.100, abs=0.001)
    assert load(10_000, SETTINGS, pack=400).write_units / 10_000 == pytest.approx(0.0975, abs=0.001)


def test_a_read_of_a_hot_lane_counts_its_tail() -> None:
    assert load(1e-4, SETTINGS).a_read == pytest.approx(2.25, abs=0.01)  # in an eighth of time beyond 54 deltas
    tail = 500 * (10 + 60 / 2)
    assert load(500, SETTINGS).tail == pytest.approx(tail, rel=0.001)
    assert load(500, SETTINGS).a_read == pytest.approx(1 + tail * sizes.DELTA_BYTES / 4096, abs=1)


def test_a_commit_costs_2_and_2_for_each_kb_of_its_segment() -> None:
    kilobytes = math.ceil((sizes.SEGMENT_BYTES + ENTRY.size * 8_000) / 1024)
    assert sizes.commit_units((8_000, 8_000)) == 2 + 2 * kilobytes == 378


@given(st.floats(0, 50), st.floats(0.01, 20))
def test_steps_that_are_begun_are_those_of_numbers_that_are_drawn(least: float, more: float) -> None:
    tail = sum(math.exp((least - step) / more) for step in range(math.floor(least) + 1, math.floor(least) + 2_000))
    assert sizes.above(least, more, 1) == pytest.approx(math.floor(least) + tail, rel=1e-6)


@given(RATES, RATES)
def test_a_higher_rate_never_writes_less(one: float, other: float) -> None:
    slow, fast = sorted((one, other))
    assert load(slow, SETTINGS).write_units <= load(fast, SETTINGS).write_units * 1.01  # beside the model's seams
    assert load(slow, SETTINGS).tail <= load(fast, SETTINGS).tail * 1.01


@given(RATES, st.booleans())
def test_no_part_of_a_lane_is_below_nothing(rate: float, clean: bool) -> None:
    of = load(rate, SETTINGS if clean else KEPT)
    parts = (
        of.put_units,
        of.commit_units,
        of.messages,
        of.look_units,
        of.visit_units,
        of.tail,
        of.tail_units,
        of.segment,
    )
    assert all(part > 0 for part in parts)
    assert (of.delete_units > 0) == (of.held > 0) == clean
    assert of.messages <= 1 / RING_EVERY_S + 1.1 / finding.SWEEP_S
    assert of.usage.item_bytes > ENTRY.size + (0 if clean else sizes.DELTA_BYTES)


@pytest.mark.parametrize("rate", [0, -1, CHANGES_MAX + 1])
def test_what_a_lane_cannot_take_has_no_price(rate: float) -> None:
    with pytest.raises(ValueError, match="changes a second"):
        load(rate, SETTINGS)
