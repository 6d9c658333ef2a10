"""The model of a lane, against what the shipped programs are charged, the service's constants, and hand arithmetic."""

import math
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.entries import ENTRY
from ledger.settings import Settings
from ledger.units import item_bytes
from ledgerctl import sizes, visits, workload
from ledgerctl.bill import ITEM_OVERHEAD_BYTES
from ledgerctl.lane import changes_max, load
from service.find.scan import PAGES_OF_RUN
from service.marks import BUCKETS, QUIET_MS, TOUCH_EVERY_MS
from service.plan.handler import LANES_MAX
from tests.ledgerctl.played import TABLE, Played

ROOT = Path(__file__).parents[2]
REGIONS = ("eu-west-1", "us-east-1")
SETTINGS = Settings(table="any", region="eu-west-1")
PASSING = "bytes that pass by"
CHANGES_MAX = changes_max(SETTINGS)
RATES = st.floats(1e-7, CHANGES_MAX)


@dataclass(frozen=True)
class Case:
    """Minutes of the shipped service: first some that are not looked at, then some that are."""

    name: str
    rate: float
    minutes: tuple[int, int]
    lanes: int = 1
    regions: int = 1
    reads: int = 1
    tuned: dict[str, int] = field(default_factory=dict)
    ever_folds: bool = True
    pack: int = 1


CASES = (
    Case("hot", 3, (12, 24), reads=3, tuned={"keep_ms": 180_000}),
    Case("hot in two Regions", 5, (6, 12), regions=2, reads=6, tuned={"keep_ms": 120_000}),
    Case("hot in packs", 40, (8, 16), reads=20, tuned={"keep_ms": 180_000}, pack=38),
    Case("hot in packs of 3 KB", 60, (8, 16), reads=12, tuned={"keep_ms": 120_000}, pack=100),
    Case("a fold every few minutes", 0.2, (30, 66), lanes=2),
    Case("many cold lanes", 1 / 300, (60, 80), lanes=40, regions=2, tuned={"fold_min": 8}),
    Case("many lanes that are never folded", 1 / 240, (10, 60), lanes=40, tuned={"fold_min": 100}, ever_folds=False),
)


def found(case: Case) -> dict[str, tuple[float, float]]:
    """By name: (what was charged, what the model says of it)."""
    settings = Settings(table=TABLE, region="eu-west-1", regions=REGIONS[: case.regions], **case.tuned)  # type: ignore[arg-type]
    played = Played(settings, case.rate, case.lanes, pack=case.pack)
    if case.ever_folds and case.rate * 60 < settings.fold_min:
        played.fill()  # else all lanes fold at once
    first, later = case.minutes
    played.play(first)
    before = {name: played.total(name) for name in ("change", "mark", "visit", "read")}
    changes = played.changes
    played.forget()
    played.play(later, case.reads)
    spent = {name: played.total(name) - cost for name, cost in before.items()}
    changes = played.changes - changes
    written = sum(cost.writes_in(case.regions) for cost in spent.values())
    rate = changes / case.lanes / later / 60  # that came, and not that was asked for
    model = load(rate, settings, pack=case.pack, ever_folds=case.ever_folds)
    resident = model.resident[0] + ITEM_OVERHEAD_BYTES * model.resident[1]
    idle_lanes = 2.0 * (case.regions - 1)  # nothing changes in the other Region's
    pairs = {
        "write units of a change": (written / changes, model.write_units / rate * case.regions),
        "read units of its visits": (spent["visit"].read_units / changes, model.visit_units / rate),
        "read units of a read": (spent["read"].read_units / len(played.tails), model.a_read + idle_lanes),
    }
    if case.ever_folds:
        pairs["bytes that it leaves"] = (played.left_bytes(), model.usage.item_bytes + 100 * model.usage.items)
        pairs[PASSING] = (sum(played.resident) / len(played.resident) / case.lanes, resident)
    return pairs


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_a_lane_is_charged_what_the_model_says_within_a_twentieth(case: Case) -> None:
    near = {PASSING: 0.1}  # a lane holds many deltas, then few
    wrong = {
        name: pair for name, pair in found(case).items() if pair[1] != pytest.approx(pair[0], rel=near.get(name, 0.05))
    }
    assert not wrong, f"(charged, the model): {wrong}"


def test_find_and_plan_are_charged_what_the_bill_says() -> None:
    played = Played(SETTINGS, rate=1 / 600, counters=40)
    played.fill()
    played.play(30)
    before = played.total("plan").read_units
    played.play(10)
    assert (played.total("plan").read_units - before) * workload.PLANS / 10 == workload.plan_units(0)
    played.find()
    scanned = sum(item_bytes(item) for item in played.table.items.values())
    counted = 1 + scanned / 4096 / 2 + len(played.counters) * workload.LOOK_UNITS
    assert played.total("find").read_units == pytest.approx(counted, rel=0.05)
    assert played.total("find").write_units == 1


def test_the_constants_are_those_of_the_service() -> None:
    assert (visits.TOUCH_S * 1000, visits.QUIET_S * 1000) == (TOUCH_EVERY_MS, QUIET_MS)
    assert (workload.LANES_MAX, workload.MARK_BUCKETS) == (LANES_MAX, BUCKETS)
    assert workload.FIND_BYTES == PAGES_OF_RUN * sizes.PAGE_BYTES
    serverless, events = ((ROOT / name).read_text() for name in ("serverless.yml", "infra/events.yml"))
    assert re.search(rf"verifyOneIn: {workload.VERIFY_ONE_IN}\b", serverless)
    assert "ScheduleExpression: rate(1 minute)" in events
    assert visits.VISIT_S == 60


def test_a_change_costs_what_the_readme_says() -> None:
    assert load(100, SETTINGS).change_units / 100 == pytest.approx(2.05, abs=0.005)  # hot
    assert load(1e-4, SETTINGS).change_units / 1e-4 == pytest.approx(2.15, abs=0.01)  # only fold_min are folded at once
    assert load(1e-4, SETTINGS, ever_folds=False).change_units == 1e-4
    assert load(10, SETTINGS).visit_units / 10 < 0.3  # "some tenths of a unit"


def test_a_lane_in_full_packs_takes_ten_thousand_changes_a_second_at_a_tenth_of_a_unit_each() -> None:
    assert changes_max(SETTINGS) == 500  # a put and a delete
    assert changes_max(SETTINGS, pack=38) == 1_000 * 38 // 2  # a KB
    assert changes_max(SETTINGS, pack=39) == 1_000 * 39 // 4
    assert changes_max(SETTINGS, pack=400) == 1_000 * 400 // 20
    assert changes_max(SETTINGS, pack=81) == 1_000 * 81 // 4
    assert load(10_000, SETTINGS, pack=38).change_units / 10_000 == pytest.approx(0.100, abs=0.001)
    assert load(10_000, SETTINGS, pack=400).change_units / 10_000 == pytest.approx(0.0975, abs=0.001)


def test_a_read_of_a_hot_lane_counts_its_tail() -> None:
    assert load(1e-4, SETTINGS).a_read == 2
    tail = 500 * (10 + 60 / 2)
    assert load(500, SETTINGS).tail == pytest.approx(tail)
    assert load(500, SETTINGS).a_read == pytest.approx(1 + tail * sizes.DELTA_BYTES / 4096, abs=1)


def test_a_commit_costs_2_and_2_for_each_kb_of_its_segment() -> None:
    kilobytes = math.ceil((sizes.SEGMENT_BYTES + ENTRY.size * 8_000) / 1024)
    assert sizes.commit_units((8_000, 8_000)) == 2 + 2 * kilobytes == 378
    assert sizes.segments_of(16_032, 10, 8_000)[:2] == [(8_000, 8_000)] * 2


@pytest.mark.parametrize(("least", "mean"), [(32, 4), (32, 15), (32, 32), (32, 60), (1, 0.3), (1, 2)])
def test_visits_until_a_fold_are_those_of_a_poisson_process(least: int, mean: float) -> None:
    """By the renewal sum, for any mean."""
    exact = sum(visits._fewer(least, n * mean) for n in range(1, 400)) + 1
    assert visits.visits_until(least, mean) == pytest.approx(exact, rel=0.02)


def test_a_lone_change_is_visited_once_and_in_a_twelfth_of_cases_again() -> None:
    """The visit comes 10 to 70 seconds after it, and in the first 5 of these the mark is not quiet."""
    assert visits.visited(1e-6, 10) / 60e-6 == pytest.approx(1 + 5 / 60, rel=0.001)
    assert visits.visited(5, 10) == pytest.approx(1)


@given(RATES, RATES)
def test_a_higher_rate_never_writes_less(one: float, other: float) -> None:
    slow, fast = sorted((one, other))
    assert load(slow, SETTINGS).write_units <= load(fast, SETTINGS).write_units * 1.01  # beside the model's seams
    assert load(slow, SETTINGS).tail <= load(fast, SETTINGS).tail * 1.01


@given(RATES)
def test_no_part_of_a_lane_is_below_nothing(rate: float) -> None:
    of = load(rate, SETTINGS)
    parts = (of.change_units, of.mark_units, of.visit_units, of.visits, of.tail, of.held, of.segment)
    assert all(part > 0 for part in parts)
    assert 0 < of.marked <= 1
    assert of.visits <= 1 / visits.VISIT_S * 1.001
    assert of.usage.item_bytes > ENTRY.size


@pytest.mark.parametrize("rate", [0, -1, CHANGES_MAX + 1])
def test_what_a_lane_cannot_take_has_no_price(rate: float) -> None:
    with pytest.raises(ValueError, match="changes a second"):
        load(rate, SETTINGS)
