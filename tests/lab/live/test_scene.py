"""The scene of the live page: ours is exact at rest, the naive counters are not, and nothing depends on the clock."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.live.controls import BadControl, Controls
from lab.live.picture import Painter, verdict
from lab.live.scene import DOWN_STEPS, REGIONS, Scene
from ledger.requests import Key

REST_STEPS_MAX = 6_000


def pass_time(scene: Scene, steps: int) -> None:
    for _ in range(steps):
        scene.step()


def come_to_rest(scene: Scene) -> None:
    scene.come_to_rest()
    for _ in range(REST_STEPS_MAX):
        if scene.resting:
            return
        scene.step()
    raise AssertionError("it never rests")


def values(scene: Scene, design: str) -> list[int]:
    return [scene.sights[region][design].value for region in REGIONS]


def disturbed(seed: int = 7) -> Scene:
    """A cut, a crash and many duplicates."""
    scene = Scene(seed, Controls(lag_ms=800, duplicates_percent=30, writes_per_s=10))
    pass_time(scene, 400)
    scene.set({"cut": True})
    scene.crash(REGIONS[0])
    pass_time(scene, 400)
    return scene


@given(
    seed=st.integers(0, 10**6),
    lag_ms=st.integers(0, 5_000),
    duplicates=st.integers(0, 50),
    acts=st.lists(st.sampled_from(["cut", "heal", *REGIONS]), max_size=5),
)
@settings(max_examples=8)
def test_ours_equals_the_truth_in_both_regions_at_rest(
    seed: int, lag_ms: int, duplicates: int, acts: list[str]
) -> None:
    scene = Scene(seed, Controls(lag_ms=lag_ms, duplicates_percent=duplicates, writes_per_s=12))
    for act in acts:
        if act in REGIONS:
            scene.crash(act)
        else:
            scene.set({"cut": act == "cut"})
        pass_time(scene, 150)
    come_to_rest(scene)
    assert values(scene, "ours") == [scene.truth.value] * 2
    assert [scene.sights[region]["ours"].count for region in REGIONS] == [scene.truth.count] * 2
    assert scene.problems == []


def test_the_naive_counters_stay_wrong_after_a_cut() -> None:
    scene = disturbed()
    come_to_rest(scene)
    pass_time(scene, 1_000)
    assert scene.truth.value not in values(scene, "atomic")
    assert scene.truth.value not in values(scene, "merge")
    assert values(scene, "ours") == [scene.truth.value] * 2
    assert verdict(scene).startswith("At rest, everything was delivered: this library equals the truth in both Regions")


def test_with_neither_lag_nor_duplicates_all_are_right() -> None:
    scene = Scene(1, Controls(lag_ms=0, duplicates_percent=0))
    pass_time(scene, 1_000)
    come_to_rest(scene)
    assert {*values(scene, "ours"), *values(scene, "atomic"), *values(scene, "merge")} == {scene.truth.value}


def test_a_scene_follows_from_its_seed() -> None:
    assert Painter(disturbed()).picture() == Painter(disturbed()).picture() != Painter(disturbed(8)).picture()


def test_while_the_link_is_cut_each_region_reads_its_own_changes_and_says_how_many_it_lacks() -> None:
    scene = disturbed()
    for region in Painter(scene).picture()["regions"]:
        ours = region["counters"]["ours"]
        assert ours["mood"] == "behind"
        lacking = scene.truth.count - (scene.sights[region["name"]]["ours"].count or 0)
        assert ours["note"] == f"{lacking} changes still on the way here"
        assert region["arriving"] > 0
    scene.set({"cut": False})
    assert verdict(scene).startswith("Both Regions count")


def test_deltas_go_from_the_tail_into_segments_and_are_cleaned_and_forgotten() -> None:
    scene = disturbed()
    come_to_rest(scene)
    for region in Painter(scene).picture()["regions"]:
        assert region["done"]["folded"] > 0 < region["done"]["cleaned"]
        for lane in region["lanes"]:
            assert lane["segments"] > 0
            assert lane["places"]["folded"]["count"] == 0 == lane["places"].get("stray", {"count": 0})["count"]
            assert lane["count"] + lane["places"]["tail"]["count"] > 0
    lanes = Painter(scene).picture()["regions"][0]["lanes"]
    assert sum(lane["count"] + lane["places"]["tail"]["count"] for lane in lanes) == scene.truth.count
    pass_time(scene, 1_000)
    for replica in scene.world.replicas.values():
        assert not [Key(pk, sk) for pk, cells in replica.cells.items() for sk, cell in cells.items() if not cell.item]


def test_strays_are_settled_and_deltas_are_cleaned_while_the_writers_go_on() -> None:
    scene, seen = Scene(3, Controls(writes_per_s=20, duplicates_percent=0)), 0
    painter = Painter(scene)
    for _ in range(75):
        pass_time(scene, 20)
        places = [lane["places"] for region in painter.picture()["regions"] for lane in region["lanes"]]
        seen += sum(place["stray"]["count"] for place in places if "stray" in place)
    assert seen > 0
    assert sum(scene.done[region]["settled"] for region in REGIONS) > 0
    assert all(scene.done[region]["cleaned"] > 0 for region in REGIONS)


def test_a_crash_comes_right_after_a_write_and_lasts() -> None:
    scene = disturbed()
    region = REGIONS[1]
    for other in ("ap-south-1", "", None, 7):
        with pytest.raises(BadControl, match="eu-west-1 and us-east-1"):
            scene.crash(other)
    scene.crash(region)
    assert scene.compactor_is(region) == "about to crash"
    while scene.compactor_is(region) == "about to crash":
        scene.step()
    assert scene.compactor_is(region) == "crashed"
    told = [row.asked.split()[0] for row in scene.requests.rows() if row.kind == "compactor" and row.region == region]
    assert told[0] == "crashes"
    assert told[1] in ("commit", "put", "delete")
    pass_time(scene, DOWN_STEPS)
    assert scene.compactor_is(region) == "running"


def test_a_compactor_with_nothing_to_write_crashes_all_the_same() -> None:
    scene = Scene(1, Controls(writes_per_s=0))
    scene.crash(REGIONS[0])
    pass_time(scene, 310)
    assert scene.compactor_is(REGIONS[0]) == "crashed"


def test_one_step_goes_to_the_next_request_of_a_writer_or_compactor() -> None:
    scene = disturbed()
    before = scene.requests.last_of_ours()
    scene.step_to_next()
    assert scene.requests.last_of_ours() > before


def test_a_value_that_cannot_be_explained_is_called_wrong() -> None:
    scene = disturbed()
    come_to_rest(scene)
    for region in REGIONS:
        scene.truth.value += 1
        counters = Painter(scene).picture()["regions"][REGIONS.index(region)]["counters"]
        assert counters["ours"]["mood"] == "wrong"
        assert counters["ours"]["note"].startswith("wrong for good: \N{MINUS SIGN}")
    assert "this library is wrong for good" in verdict(scene)
