"""What the live page says is what the shipped programs read, and only the page itself may change
it.
"""

import math
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any

import pytest

from lab.live.controls import LAG_MS, Controls
from lab.live.picture import picture
from lab.live.scene import STEP_MS, Scene
from lab.live.scripts import ADVANCE_SEATS as ADVANCE
from lab.live.scripts import BAR_MS, BARS, SEATS
from ledger.lane.add import add
from tests.world import A, B


def moods(scene: Scene) -> set[str]:
    return {region["counters"]["ours"]["mood"] for region in picture(scene)["regions"]}


def at_rest(scene: Scene) -> Any:
    scene.come_to_rest()
    while not scene.resting:
        scene.step()
    return picture(scene)


def test_a_number_is_judged_by_what_its_region_has_received() -> None:
    scene = Scene(7, Controls(lag_ms=800, duplicates_percent=30, writes_per_s=16))
    for step in range(800):
        if step == 400:
            scene.set({"cut": True})
            scene.crash(A)
        scene.step()
    assert picture(scene)["verdict"].endswith(
        "crashed right after a write. The crash changed no number."
    )
    for region in (A, B):
        assert 0 < scene.readings[region]["ours"].received_count < scene.truth.count
    assert moods(scene) <= {"exact", "behind"}
    scene.set({"cut": False})
    before = scene.requests
    scene.step_to_next()
    assert scene.requests > before
    found = at_rest(scene)
    for region in found["regions"]:
        ours, *naive = (counter["value"] for counter in region["counters"].values())
        assert ours == scene.truth.value not in naive
        assert scene.now_ms < BAR_MS * (BARS - 1)  # so that no change is older than the chart
        assert (len(region["chart"]), sum(region["chart"])) == (BARS, ours)
        assert sum(change > 0 for change in region["chart"]) > 1
    assert [verdict["mood"] for verdict in found["verdicts"]] == ["exact", "wrong", "wrong"]
    assert found["verdicts"][0]["reads"] == f"{scene.truth.value} = {scene.truth.value}"
    ours, add = found["sale"]["sellers"].values()
    assert (ours["sold"], ours["note"]) == (SEATS, f"{len(scene.buyers) - SEATS} refused")
    assert add["note"] == f"{add['sold'] - SEATS} without a seat"
    assert all(
        scene.done[A][done] + scene.done[B][done] for done in ("folded", "settled", "cleaned")
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_wrong_before_the_first_cut(seed: int) -> None:
    scene = Scene(seed)
    for step in range(1_400):
        scene.step()
        if step % 20 == 0:
            found = picture(scene)
            counters = [region["counters"].values() for region in found["regions"]]
            assert {each["mood"] for each in chain(*counters)} <= {"exact", "behind"}
            assert all(seller["sold"] <= ADVANCE for seller in found["sale"]["sellers"].values())
    assert [seller["sold"] for seller in found["sale"]["sellers"].values()] == [ADVANCE, ADVANCE]


def test_a_scene_that_nobody_disturbs_has_three_right_verdicts() -> None:
    scene = Scene(3)
    for _ in range(500):
        scene.step()
    found = at_rest(scene)
    assert [verdict["mood"] for verdict in found["verdicts"]] == ["exact", "exact", "exact"]
    assert found["verdict"] == "At rest. Nothing is wrong."


def test_the_first_cut_brings_trouble_and_sells_the_other_seats() -> None:
    scene = Scene(1)
    for _ in range(1_100):
        scene.step()
    scene.set({"duplicates_percent": 20})
    scene.set({"cut": True})
    assert scene.controls == Controls(cut=True, lag_ms=LAG_MS, duplicates_percent=20)
    for _ in range(1_100):
        scene.step()
    ours, add = (seller["sold"] for seller in picture(scene)["sale"]["sellers"].values())
    assert ADVANCE < ours <= SEATS < add


@pytest.mark.parametrize("crash", [False, True])
def test_a_verdict_comes_within_the_wait_that_is_shown(crash: bool) -> None:
    scene = Scene(5, Controls(lag_ms=5_000, duplicates_percent=50, writes_per_s=20, cut=True))
    for _ in range(400):
        scene.step()
    scene.set({"writes_per_s": 0})
    assert picture(scene)["verdict"] == "No new changes, and the link is cut."
    for region in (A, B) if crash else ():
        scene.crash(region)
    scene.come_to_rest()
    waits = [scene.rests_in_ms]
    assert picture(scene)["wait"] == f"Verdict in at most {math.ceil(waits[0] / 1_000)} s"
    while not scene.resting:
        scene.step()
        waits.append(scene.rests_in_ms)
    assert len(waits) * STEP_MS <= waits[0] <= 25_000
    assert all(later <= sooner for sooner, later in pairwise(waits))
    assert picture(scene)["verdicts"][0]["mood"] == "exact"


def test_a_library_that_reads_too_much_is_called_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(3, Controls(duplicates_percent=0))
    planted = lambda delta: add(replace(delta, change=delta.change + 1))  # noqa: E731
    monkeypatch.setattr("lab.designs.item_collection.add", planted)
    for _ in range(400):
        scene.step()
    assert "wrong" in moods(scene)
    verdict = at_rest(scene)["verdicts"][0]
    assert verdict["mood"] == "wrong"
    assert verdict["note"].startswith("+")
