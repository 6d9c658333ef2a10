"""The stories: they run by themselves in the scene's time, follow from their seed, and give way to a visitor."""

import json

import pytest

from lab.live.controls import BadControl
from lab.live.counting import Counting
from lab.live.loop import PAINTERS, Loop
from lab.live.selling import SEATS, Selling
from lab.live.stories import STORIES, Teller

STEPS_MAX = 20_000


def told(name: str, seed: int) -> tuple[Teller, list[str]]:
    """A story that was told to its end, and its steps in the order in which they were."""
    teller = Teller(name, seed)
    steps = [teller.step.name]
    for _ in range(STEPS_MAX):
        if teller.over:
            return teller, steps
        teller.pass_time()
        if teller.step.name != steps[-1]:
            steps.append(teller.step.name)
    raise AssertionError("it never ends")


@pytest.mark.parametrize("seed", [1, 7])
def test_the_counter_is_told_by_itself_in_five_steps_and_ends_exact(seed: int) -> None:
    teller, steps = told("counter", seed)
    scene = teller.scene
    assert isinstance(scene, Counting)
    assert steps == ["count", "cut", "crash", "heal", "rest"]
    assert {each["ours"].value for each in scene.readings.values()} == {scene.truth.value}
    assert scene.truth.value not in {each["atomic"].value for each in scene.readings.values()}
    assert len(scene.since_crash["eu-west-1"]) > 10
    assert not teller.by_itself


@pytest.mark.parametrize("seed", [1, 7])
def test_the_sale_is_told_by_itself_and_ends_with_every_seat_sold_once(seed: int) -> None:
    teller, steps = told("sale", seed)
    scene = teller.scene
    assert isinstance(scene, Selling)
    assert steps == ["sell", "cut", "heal", "rest"]
    assert scene.seats("ours", "sold") == SEATS < scene.seats("atomic", "sold")
    assert {each["ours"].value for each in scene.left.values()} == {0}


@pytest.mark.parametrize("name", STORIES)
def test_a_story_follows_from_its_seed(name: str) -> None:
    tellers = [Teller(name, seed) for seed in (3, 3, 4)]
    for teller in tellers:
        for _ in range(800):
            teller.pass_time()
    one, other, another = (PAINTERS[teller.story.scene](teller).picture() for teller in tellers)
    assert one == other != another | {"story": one["story"]}


@pytest.mark.parametrize("name", STORIES)
def test_a_caption_says_no_number_and_is_short_enough_for_four_lines_of_a_phone(name: str) -> None:
    for step in STORIES[name].steps:
        words = step.caption.replace("eu-west-1", "")
        assert not any(letter.isdigit() for letter in words)
        assert 40 < len(step.caption) <= 165


def test_a_visitor_who_moves_a_control_takes_over_and_one_who_pauses_does_not() -> None:
    for asked in ({"set": {"cut": True}}, {"crash": "eu-west-1"}, {"rest": True}, {"go": "heal"}):
        loop = Loop()
        loop.do({"set": {"paused": True}})
        assert shown(loop)["by_itself"]
        loop.do(asked)
        assert not shown(loop)["by_itself"]
        loop.do({"tell": True})
        assert shown(loop)["by_itself"]


def is_cut(teller: Teller) -> bool:
    return teller.scene.controls.cut


def test_step_by_step_each_does_what_it_says() -> None:
    teller = Teller()
    scene = teller.scene
    assert isinstance(scene, Counting)
    teller.go("cut")
    assert is_cut(teller)
    teller.go("crash")
    assert scene.compactor_is("eu-west-1") == "about to crash"
    teller.go("heal")
    assert not is_cut(teller)
    teller.go("rest")
    assert scene.controls.writes_per_s == 0
    teller.go("count")
    assert teller.scene.controls.writes_per_s > 0
    for _ in range(3_000):
        teller.pass_time()
    assert teller.step.name == "count"


def test_a_story_that_is_over_is_told_again_from_its_first_step() -> None:
    teller, _ = told("counter", 1)
    teller.tell(by_itself=True)
    assert (teller.step.name, teller.scene.controls.writes_per_s) == ("count", 6)


@pytest.mark.parametrize("asked", [{"tell": True}, {"go": "sell"}])
def test_a_sale_that_is_told_again_has_seats_again_and_the_page_is_sent_them(asked: object) -> None:
    loop = Loop("sale", 3)
    loop.do({"go": "rest"})
    teller = loop._teller
    while not teller.over:
        teller.pass_time()
    loop.do(asked)
    assert teller.step.name == "sell"
    pictures = loop.pictures()
    picture = json.loads(next(pictures))
    pictures.close()
    assert picture["now_ms"] == 0
    assert "this library 0, conditional ADD 0" in picture["head"]["says"]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"begin": {"story": "war", "seed": 1}}, "There is no story 'war'; there are counter and sale."),
        ({"begin": {"story": None, "seed": 1}}, "There is no story None"),
        ({"begin": {"story": ["sale"], "seed": 1}}, "There is no story"),
        ({"begin": {"story": "sale", "seed": -1}}, "A seed is a whole number from 0 to 2,147,483,647, not -1."),
        ({"begin": {"story": "sale", "seed": "x"}}, "A seed is a whole number"),
        ({"begin": {"story": "sale", "seed": True}}, "A seed is a whole number"),
        ({"begin": {"story": "sale"}}, "begin a story and a seed"),
        ({"begin": True}, "begin a story and a seed"),
        ({"go": "crush"}, "There is no step 'crush'; there are count, cut, crash, heal, rest."),
        ({"tell": 1}, "true or false, not 1"),
    ],
)
def test_a_story_or_a_step_that_does_not_exist_is_refused_with_a_sentence(asked: object, says: str) -> None:
    loop = Loop("counter", 5)
    before = shown(loop)
    with pytest.raises(BadControl) as refused:
        loop.do(asked)
    assert says in str(refused.value)
    assert shown(loop) == before


def shown(loop: Loop) -> dict[str, object]:
    """What the page is told of the story."""
    pictures = loop.pictures()
    found: dict[str, object] = json.loads(next(pictures))["story"]
    pictures.close()
    return found
