"""Where things are on the page, in a real browser: on a desktop and on a phone, and when words and numbers change."""

import pytest

from tests.browser.conftest import Page

LONGEST = r"""
    const said = { value: 1342, mood: "wrong", note: "wrong for good: \u22121,125" };
    pictures.close();
    show({ ...picture, verdict: "At rest: this library equals the truth in both Regions, atomic ADD is wrong for good "
        + "(\u2212125, \u2212125), the naive merge is wrong for good (\u221281, \u221281).",
        regions: picture.regions.map((region) => ({ ...region, counters: { ...region.counters, merge: said } })) });
"""
CLIPPED = (
    "return [...document.querySelectorAll('button, .note, .value, #caption, #verdict, p')]"
    ".filter((e) => e.offsetParent && e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent)"
)


@pytest.mark.parametrize("size", [(1440, 900), (960, 890), (390, 844)])
def test_nothing_moves_when_a_verdict_is_long_or_a_word_changes(page: Page, size: tuple[int, int]) -> None:
    page.look(size)
    parts = ("#more", "#again", "#lag_ms", ".controls", "#cable", "article svg")
    page.wait(lambda: page.number("#truth") > 5)
    places = [page.bottom(part) for part in parts]
    page.click("#cut")
    page.wait(lambda: page.text("#cut") == "Heal the link")
    page.click("#paused")
    page.wait(lambda: page.text("#paused") == "Go on")
    assert [page.bottom(part) for part in parts] == places
    page.run(LONGEST)
    assert "for good" in page.text("#verdict")
    assert [page.bottom(part) for part in parts] == places


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)])
@pytest.mark.parametrize("dark", [False, True])
def test_what_teaches_is_on_the_first_screen_and_the_controls_stay(
    page: Page, size: tuple[int, int], dark: bool
) -> None:
    """What happens, the cable and what both Regions read of each design; a minus is one, and no text is cut off."""
    page.look(size, dark=dark)
    page.wait(lambda: page.number("#truth") > 20 and page.all(".track i"))
    page.click("article .crash")
    page.wait(lambda: page.text("#verdict").endswith("crashed right after a write. The crash changed no number."))
    below = "figure" if size[0] > 800 else "[data-design='merge'] .note"
    for region in ("eu-west-1", "us-east-1"):
        assert page.bottom(f"[data-region='{region}'] {below}") < size[1]
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    assert page.run(CLIPPED) == []
    assert "-" not in page.text(".counters")
    page.run("scrollTo(0, 400)")
    page.wait(lambda: 0 < page.bottom("#cut") < 60)
