"""Where things are on the page, in a real browser: on a desktop and on a phone, and when words and numbers change."""

import pytest

from tests.browser.conftest import Page


def test_the_first_screen_of_a_phone_says_that_a_crash_changed_no_number(page: Page) -> None:
    page.look((390, 844))
    page.click("#steps li:nth-child(3) button")
    page.wait(lambda: page.text("#verdict").endswith("crashed right after a write. The crash changed no number."))
    page.wait(lambda: page.text("#verdict").endswith("is back, from its checkpoint. The crash changed no number."))
    assert page.bottom("#verdict") < 844


LONGEST = r"""
    const why = ["\u2212136: 179 adds were overwritten", "+9: 17 answers were lost, and the adds sent again",
        "\u221298: 54 changes went with an overwritten total"];
    const said = { value: 1342, mood: "wrong", note: "wrong for good: \u22121,125", why };
    pictures.close();
    show({ ...picture, verdict: "At rest: this library equals the truth in both Regions, atomic ADD is wrong for good "
        + "(\u2212125, \u2212125), the naive merge is wrong for good (\u221281, \u221281).",
        regions: picture.regions.map((region) => ({ ...region, counters: { ...region.counters, merge: said } })) });
"""


@pytest.mark.parametrize("size", [(1440, 900), (960, 890), (390, 844)])
def test_nothing_moves_when_a_number_has_many_reasons_or_the_verdict_is_long(page: Page, size: tuple[int, int]) -> None:
    page.look(size)
    page.click("#again")
    page.wait(lambda: page.number("#truth") < 20)
    below = "#cable" if size[0] < 800 else "article svg"
    before = page.bottom(below)
    page.run(LONGEST)
    assert "for good" in page.text("#verdict")
    assert page.bottom(below) == before


def test_both_charts_have_one_scale_and_a_minus_is_one(page: Page) -> None:
    page.open("?story=sale&seed=3")
    page.click("#steps li:nth-child(2) button")
    page.wait(lambda: page.text("article .least").startswith("\N{MINUS SIGN}"))
    page.click("#paused")
    page.wait(lambda: page.text("#verdict").startswith("Paused"))
    for end in (".most", ".least"):
        assert len({each.text for each in page.all(f"article {end}")}) == 1


@pytest.mark.parametrize("width", [390, 700, 870, 900, 960, 1040, 1100, 1280, 1440])
def test_the_controls_and_what_is_below_stay_where_they_are_when_their_words_change(page: Page, width: int) -> None:
    page.look((width, 900))
    parts = ("#more", "#again", "#lag_ms", ".controls", "#steps")
    places = [page.bottom(part) for part in parts]
    page.click("#cut")
    page.wait(lambda: page.text("#cut") == "Heal the link")
    page.click("#paused")
    page.wait(lambda: page.text("#paused") == "Go on")
    assert [page.bottom(part) for part in parts] == places


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)])
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("address", ["?story=counter&seed=7", "?story=sale&seed=7"])
def test_what_teaches_is_on_the_first_screen(page: Page, size: tuple[int, int], dark: bool, address: str) -> None:
    """Steps, caption, cable and what both Regions read of ours and of ADD; the controls stay when it is scrolled."""
    page.prefer(dark=dark)
    page.look(size)
    page.open(address)
    page.wait(lambda: page.number("#truth") > 20 and page.all(".track i"))
    wide = size[0] > 800
    assert page.bottom("#cable") < (420 if wide else 500)
    for region in ("eu-west-1", "us-east-1"):
        assert page.bottom(f"[data-region='{region}'] [data-design='atomic'] .note") < size[1]
        assert not wide or page.bottom(f"[data-region='{region}'] figure") < size[1]
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    clipped = (
        "return [...document.querySelectorAll('button, .note, .why, .value, #caption, #verdict, p')]"
        ".filter((e) => e.offsetParent && e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent)"
    )
    assert page.run(clipped) == []
    (page.screenshots / f"{address[7:11]}-{size[0]}{'-dark' if dark else ''}.png").write_bytes(page.as_seen())
    page.run("scrollTo(0, 600)")
    page.wait(lambda: 0 < page.bottom("#cut") < 60)
    page.prefer(dark=False)
