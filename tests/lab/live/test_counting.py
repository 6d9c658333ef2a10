"""The scene of a counter: ours is exact at rest, the naive ones are not, and why is counted change by change."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.live.controls import BadControl, Controls
from lab.live.counting import DOWN_STEPS, Counting
from lab.live.counting_picture import CountingPainter
from lab.live.readings import Reading
from lab.live.scene import REGIONS
from lab.live.stories import Teller
from ledger.requests import Key

REST_STEPS_MAX = 6_000


def pass_time(scene: Counting, steps: int) -> None:
    for _ in range(steps):
        scene.step()


def come_to_rest(scene: Counting) -> None:
    scene.come_to_rest()
    for _ in range(REST_STEPS_MAX):
        if scene.resting:
            return
        scene.step()
    raise AssertionError("it never rests")


def painter_of(scene: Counting) -> CountingPainter:
    teller = Teller()
    teller.scene = scene
    return CountingPainter(teller)


def values(scene: Counting, design: str) -> list[int]:
    return [scene.readings[region][design].value for region in REGIONS]


def disturbed(seed: int = 7) -> Counting:
    """A cut, a crash and many duplicates."""
    scene = Counting(seed, Controls(lag_ms=800, duplicates_percent=30, writes_per_s=10))
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
    scene = Counting(seed, Controls(lag_ms=lag_ms, duplicates_percent=duplicates, writes_per_s=12))
    for act in acts:
        if act in REGIONS:
            scene.crash(act)
        else:
            scene.set({"cut": act == "cut"})
        pass_time(scene, 150)
    come_to_rest(scene)
    assert values(scene, "ours") == [scene.truth.value] * 2
    assert [scene.readings[region]["ours"].count for region in REGIONS] == [scene.truth.count] * 2
    assert scene.problems == []


def test_the_naive_counters_stay_wrong_after_a_cut() -> None:
    scene = disturbed()
    come_to_rest(scene)
    pass_time(scene, 1_000)
    assert scene.truth.value not in values(scene, "atomic")
    assert scene.truth.value not in values(scene, "merge")
    assert values(scene, "ours") == [scene.truth.value] * 2
    assert painter_of(scene).verdict().startswith("At rest: this library equals the truth in both Regions")


def test_with_neither_lag_nor_duplicates_all_are_right() -> None:
    scene = Counting(1, Controls(lag_ms=0, duplicates_percent=0))
    pass_time(scene, 1_000)
    come_to_rest(scene)
    assert {*values(scene, "ours"), *values(scene, "atomic"), *values(scene, "merge")} == {scene.truth.value}


def test_a_scene_follows_from_its_seed() -> None:
    assert painter_of(disturbed()).picture() == painter_of(disturbed()).picture() != painter_of(disturbed(8)).picture()


def test_while_the_link_is_cut_all_are_judged_by_what_their_region_can_know() -> None:
    scene = disturbed()
    for region in painter_of(scene).picture()["regions"]:
        name, ours = region["name"], region["counters"]["ours"]
        reading = scene.readings[name]["ours"]
        assert region["know"]["value"] == reading.known
        assert 0 < reading.known_count < scene.truth.count
        assert region["know"]["says"] == f"{reading.known_count} of {scene.truth.count} changes"
        assert ours["mood"] in ("exact", "behind")
        assert region["counters"]["atomic"]["mood"] == "off"
    assert all(each["count"] > 0 for each in painter_of(scene).picture()["cable"])
    pass_time(scene, DOWN_STEPS)
    assert painter_of(scene).verdict().startswith("The link is cut")
    scene.set({"cut": False})
    assert painter_of(scene).verdict().startswith("Both Regions")


@given(seed=st.integers(0, 10**6), duplicates=st.integers(0, 50), lag_ms=st.integers(0, 3_000))
@settings(max_examples=8)
def test_the_reasons_of_a_wrong_number_give_exactly_what_it_is_off(seed: int, duplicates: int, lag_ms: int) -> None:
    scene = Counting(seed, Controls(lag_ms=lag_ms, duplicates_percent=duplicates, writes_per_s=12))
    told = 0
    for step in range(1_200):
        if step in (300, 800):
            scene.set({"cut": step == 300})
        scene.step()
        for region in REGIONS:
            for design in ("atomic", "merge"):
                reading = scene.readings[region][design]
                assert sum(why.amount for why in reading.why) == reading.off
                told += bool(reading.off)
    assert told > 100


def test_adds_are_told_as_overwritten_only_when_regions_overwrite_and_as_sent_again_only_when_they_were() -> None:
    scene = Counting(5, Controls(lag_ms=0, duplicates_percent=50, writes_per_s=3))
    pass_time(scene, 1_000)
    come_to_rest(scene)
    (again,) = scene.readings[REGIONS[0]]["atomic"].why
    assert (again.kind, again.changes) == ("again", scene.truth.redelivered)
    counters = painter_of(scene).picture()["regions"][0]["counters"]
    (why,) = counters["atomic"]["why"]
    assert why == f"+{again.amount}: {again.changes} answers were lost, and the adds sent again"
    scene = Counting(5, Controls(duplicates_percent=0, writes_per_s=12))
    pass_time(scene, 1_000)
    come_to_rest(scene)
    (lost,) = scene.readings[REGIONS[0]]["atomic"].why
    assert lost.kind == "overwritten"
    assert lost.amount == scene.readings[REGIONS[0]]["atomic"].value - scene.truth.value


def test_what_a_region_can_know_grows_to_the_truth_and_is_never_less_than_ours() -> None:
    scene, before = disturbed(), dict.fromkeys(REGIONS, 0)
    for step in range(1_500):
        if step == 500:
            scene.set({"cut": False})
        scene.step()
        for region in REGIONS:
            known = len(scene.knowledge.known(region))
            assert before[region] <= known <= scene.truth.count
            before[region] = known
            assert (scene.readings[region]["ours"].count or 0) <= known
    come_to_rest(scene)
    assert {scene.knowledge.value(region) for region in REGIONS} == {scene.truth.value}


def test_a_compactor_that_is_back_says_that_no_number_changed_or_how_many_readings_were_wrong() -> None:
    scene = disturbed()
    pass_time(scene, DOWN_STEPS + 100)
    region = REGIONS[0]
    assert scene.compactor_is(region) == "running"
    assert len(scene.since_crash[region]) > 10
    assert painter_of(scene).region(region)["state"].endswith("The crash changed no number.")
    scene.since_crash[region].append(Reading(value=8, count=3, known=7, known_count=3))
    assert painter_of(scene).region(region)["state"].endswith("Since the crash: 1 wrong reading.")


def test_while_a_compactor_is_down_the_verdict_says_what_the_crash_changed() -> None:
    scene = disturbed()
    crashed = "The compactor of eu-west-1 crashed right after a write."
    assert painter_of(scene).verdict() == f"{crashed} The crash changed no number."
    scene.since_crash[REGIONS[0]].append(Reading(value=8, count=3, known=7, known_count=3))
    assert painter_of(scene).verdict() == f"{crashed} Since the crash: 1 wrong reading."


def test_deltas_go_from_the_tail_into_segments_and_are_cleaned_and_forgotten() -> None:
    scene = disturbed()
    come_to_rest(scene)
    for region in painter_of(scene).picture()["regions"]:
        assert scene.done[region["name"]]["folded"] > 0 < scene.done[region["name"]]["cleaned"]
        for lane in region["lanes"]:
            assert lane["segments"] > 0
            assert lane["places"]["folded"]["count"] == 0 == lane["places"].get("stray", {"count": 0})["count"]
            assert lane["count"] + lane["places"]["tail"]["count"] > 0
    lanes = painter_of(scene).picture()["regions"][0]["lanes"]
    assert sum(lane["count"] + lane["places"]["tail"]["count"] for lane in lanes) == scene.truth.count
    pass_time(scene, 1_000)
    for replica in scene.world.replicas.values():
        assert not [Key(pk, sk) for pk, cells in replica.cells.items() for sk, cell in cells.items() if not cell.item]


def test_strays_are_settled_and_deltas_are_cleaned_while_the_writers_go_on() -> None:
    scene, seen = Counting(3, Controls(writes_per_s=20, duplicates_percent=0)), 0
    painter = painter_of(scene)
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
    scene = Counting(1, Controls(writes_per_s=0))
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
    scene.truth.value += 1
    for region in REGIONS:
        ours = painter_of(scene).region(region)["counters"]["ours"]
        assert (ours["mood"], ours["note"]) == ("wrong", "wrong for good: \N{MINUS SIGN}1")
    assert "this library is wrong for good" in painter_of(scene).verdict()


def test_until_it_rests_it_is_said_what_is_still_to_come() -> None:
    scene = disturbed()
    scene.come_to_rest()
    pass_time(scene, DOWN_STEPS)
    assert "Still to come: " in painter_of(scene).verdict()
    while not scene.calm:
        scene.step()
    pass_time(scene, 200)
    assert painter_of(scene).verdict().endswith("finish, 50 %.")
