"""The flash sale: with a limit no seat is sold twice and none is left, whatever the cable does; a conditional ADD sells
what its copy shows."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.live.controls import BadControl, Controls
from lab.live.scene import REGIONS
from lab.live.selling import SEATS, Selling
from lab.live.selling_picture import SellingPainter
from lab.live.stories import Teller


def sold_out(seed: int, controls: Controls, *, cut_steps: int) -> Selling:
    scene = Selling(seed, controls)
    for step in range(2_000):
        if step == 300:
            scene.set({"cut": True})
        if step == 300 + cut_steps:
            scene.set({"cut": False})
        scene.step()
        if step % 10 == 0:
            assert scene.seats("ours", "sold") <= SEATS
    scene.come_to_rest()
    while not scene.resting:
        scene.step()
    return scene


@given(seed=st.integers(0, 10**6), cut_steps=st.integers(1, 1_200), duplicates=st.sampled_from([0, 30]))
@settings(max_examples=4)
def test_ours_promises_every_seat_once_and_ends_at_zero(seed: int, cut_steps: int, duplicates: int) -> None:
    scene = sold_out(seed, Controls(duplicates_percent=duplicates, writes_per_s=20), cut_steps=cut_steps)
    assert scene.seats("ours", "sold") == SEATS
    assert [scene.left[region]["ours"].value for region in REGIONS] == [0, 0]
    assert scene.seats("ours", "waits") == 0 < scene.seats("ours", "refused")
    assert scene.problems == []


def test_the_conditional_add_oversells_through_a_cut_and_reads_zero() -> None:
    teller = Teller("sale", 7)
    teller.scene = scene = sold_out(7, Controls(duplicates_percent=0, writes_per_s=20), cut_steps=1_000)
    assert scene.oversold("atomic") > 0 == scene.oversold("ours")
    assert [scene.left[region]["atomic"].value for region in REGIONS] == [0, 0]
    picture = SellingPainter(teller).picture()
    for region in picture["regions"]:
        assert region["counters"]["ours"]["mood"] == "exact"
        assert region["counters"]["ours"]["note"].startswith("left, ")
        assert region["counters"]["atomic"]["mood"] == "wrong"
        assert region["counters"]["atomic"]["why"] == [
            f"oversold by {scene.oversold('atomic')}: each Region sold seats that the other had sold"
        ]
    assert "this library promised 200 of 200 seats, 0 left; the conditional ADD promised" in picture["verdict"]


def test_with_one_customer_at_a_time_and_no_lag_both_sell_all_seats_and_no_more() -> None:
    scene = Selling(3, Controls(lag_ms=0, duplicates_percent=0, writes_per_s=5))
    for _ in range(4_000):
        scene.step()
    assert {scene.seats(design, "sold") for design in scene.DESIGNS} == {SEATS}


def test_while_the_link_is_cut_customers_wait_where_there_are_no_rights_and_are_answered_after_it() -> None:
    teller = Teller("sale", 7)
    scene = teller.scene
    assert isinstance(scene, Selling)
    for _ in range(300):
        scene.step()
    scene.set({"cut": True})
    while not any("for the other Region" in SellingPainter(teller).region(region)["state"] for region in REGIONS):
        scene.step()
    assert scene.seats("ours", "waits") > 0
    scene.come_to_rest()
    while not scene.resting:
        scene.step()
    assert scene.seats("ours", "waits") == 0


def test_a_number_of_seats_is_told_as_right_only_where_so_many_are_left() -> None:
    teller, moods = Teller("sale", 7), set()
    scene = teller.scene
    assert isinstance(scene, Selling)
    for _ in range(600):
        teller.pass_time()
        for region in REGIONS:
            for design, counter in SellingPainter(teller).region(region)["counters"].items():
                is_so = counter["value"] == SEATS - scene.seats(design, "sold")
                assert counter["mood"] == ("exact" if is_so else "behind")
                moods.add(counter["mood"])
    assert moods == {"exact", "behind"}


def test_a_sale_that_ends_early_says_which_number_of_seats_is_wrong_and_why() -> None:
    teller = Teller("sale", 7)
    scene = teller.scene
    assert isinstance(scene, Selling)
    for _ in range(400):
        scene.step()
    scene.come_to_rest()
    while not scene.resting:
        scene.step()
    assert scene.oversold("atomic") == 0
    for region in REGIONS:
        counters = SellingPainter(teller).region(region)["counters"]
        assert (counters["ours"]["mood"], counters["ours"]["why"]) == ("exact", [])
        left = SEATS - scene.seats("atomic", "sold")
        assert counters["atomic"]["mood"] == "wrong"
        assert counters["atomic"]["why"] == [f"{left} are left: sales were overwritten"]


def test_nobody_can_crash_at_a_gate() -> None:
    with pytest.raises(BadControl, match="a gate needs no compactor"):
        Selling().crash(REGIONS[0])
