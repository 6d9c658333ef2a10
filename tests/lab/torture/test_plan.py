"""Plans that hold together, and records that a kill has torn."""

from pathlib import Path

import pytest

from lab.torture.plan import DELTAS_OF_COUNTER, KEEP_MS, ON_TIME_MS, REGIONS, SKEW_MAX_MS, Plan
from lab.torture.record import Recorder, lines_of
from lab.torture.writers import Asked


@pytest.mark.parametrize("seed", range(50))
def test_every_plan_has_settings_that_hold_together(seed: int) -> None:
    plan = Plan(seed, 1_000, "nowhere", proxy="http://127.0.0.1:1")
    for region in REGIONS:
        settings = plan.settings(region, "outside")
        assert settings.endpoint_url == "http://127.0.0.1:1/outside"
        assert settings.keep_ms == KEEP_MS > settings.read_time_max_ms
        assert 0 < ON_TIME_MS < settings.allowed_lateness_ms - SKEW_MAX_MS
    assert Asked(1, DELTAS_OF_COUNTER - 1, "eu-west-1", 0).change.change < 10**18


def test_a_plans_clock_is_the_monotonic_one() -> None:
    plan = Plan(1, 1, "")
    wall_ms = plan.clock()()
    assert plan.monotonic_ns(wall_ms) + plan.wall_ns == wall_ms * 1_000_000
    before, ahead, after = plan.clock()(), plan.clock(100)(), plan.clock()()
    assert before + 100 <= ahead <= after + 100


def test_a_line_torn_by_a_kill_is_left_out(tmp_path: Path) -> None:
    with Recorder(tmp_path / "a.jsonl") as recorder:
        recorder.write("w", "invoke", "add", [1])
    with (tmp_path / "a.jsonl").open("ab") as file:
        file.write(b'{"process": "w"')
    assert [line["value"] for line in lines_of(tmp_path / "a.jsonl")] == [[1]]
    assert lines_of(tmp_path / "missing.jsonl") == []
