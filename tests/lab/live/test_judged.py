"""What is said of a number: whether it is wrong, why, and what may still pass."""

from lab.live.controls import Controls
from lab.live.counting import Counting
from lab.live.counting_picture import judged
from lab.live.readings import Reading, Why
from lab.live.scene import REGIONS


def test_what_is_in_a_number_before_its_change_came_is_told_as_early_and_not_as_on_its_way() -> None:
    amounts: dict[str, set[int]] = {"coming": set(), "early": set()}
    scene = Counting(7, Controls(lag_ms=800, writes_per_s=12))
    for _ in range(600):
        scene.step()
        for region in REGIONS:
            for why in scene.readings[region]["atomic"].why:
                if why.kind in amounts:
                    amounts[why.kind].add(why.amount)
    assert max(amounts["early"]) > 0 > min(amounts["coming"])


def test_a_number_whose_reasons_may_still_pass_is_not_told_as_wrong() -> None:
    scene = Counting(7)
    why = (Why("coming", 2, -3), Why("early", 1, 2))
    said = judged(scene, "atomic", Reading(value=9, known=10, known_count=4, why=why))
    assert said == {
        "mood": "behind",
        "note": "nothing lost or doubled",
        "why": ["\N{MINUS SIGN}3: 2 adds are on their way", "+2: 1 add is ahead of its change"],
    }
    lost = judged(scene, "atomic", Reading(value=10, known=10, known_count=4, why=(Why("again", 2, 0),)))
    assert lost["mood"] == "exact"
    off = judged(scene, "atomic", Reading(value=9, known=10, known_count=4, why=(*why, Why("again", 2, 0))))
    assert (off["mood"], off["why"][-1]) == ("off", "±0: 2 answers were lost, and the adds sent again")
