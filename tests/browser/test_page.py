"""What a visitor sees and can do on the live page, in a real browser."""

from __future__ import annotations

import pytest
from selenium.webdriver import Keys

from tests.browser.page import DESKTOP, PHONE, Page

SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])
PICTURE_BYTES_MAX = 120_000

LOW_CONTRAST = """
const channels = (color) => color.match(/[0-9.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
  .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const color = channels(getComputedStyle(e).backgroundColor);
    if (color.length === 3 || color[3] > 0) return color;
  }
};
return [...document.querySelectorAll("body *")]
  .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) && e.checkVisibility())
  .filter((e) => !e.disabled)
  .map((e) => [light(channels(getComputedStyle(e).color)), light(behind(e)), e.outerHTML.slice(0, 120)])
  .filter(([a, b]) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5);
"""

TOO_WIDE = """
return [...document.querySelectorAll("body *")]
  .filter((e) => e.getBoundingClientRect().right > innerWidth + 0.5).map((e) => e.outerHTML.slice(0, 120));
"""


def disturbed(page: Page) -> None:
    """Much lag, many duplicates and writers, the link cut for a while with changes in both Regions."""
    page.slide("duplicates_percent", Keys.END)
    page.slide("writes_per_s", Keys.END)
    page.slide("lag_ms", Keys.RIGHT, 10)
    page.wait(lambda: page.text("output[for=lag_ms]") == "1,400 ms")
    page.click("#cut")
    page.wait(lambda: page.text("#verdict").startswith("The link is cut"))
    cut_at = page.number("#truth")
    page.wait(lambda: page.number("#truth") > cut_at + 80)


def at_rest(page: Page) -> None:
    page.wait(lambda: page.text("#verdict").startswith("At rest"))


def test_after_a_cut_with_lag_and_duplicates_the_page_shows_the_truth_in_both_regions(page: Page) -> None:
    disturbed(page)
    page.screenshot("cut-light-desktop")
    page.click("#cut")
    page.wait(lambda: page.text("#verdict").startswith("Both Regions count"))
    page.click("#rest")
    at_rest(page)
    truth = page.number("#truth")
    assert truth > 100
    assert page.values("ours") == [truth, truth]
    assert page.values("atomic") != [truth, truth]
    assert "this library equals the truth in both Regions" in page.text("#verdict")
    page.screenshot("rest-light-desktop")
    page.look(scheme="dark")
    at_rest(page)
    page.screenshot("rest-dark-desktop")
    page.look(PHONE, scheme="dark")
    at_rest(page)
    page.screenshot("rest-dark-phone")
    page.look((980, 800))
    at_rest(page)
    assert page.screenshot("live", upto="figure").stat().st_size <= PICTURE_BYTES_MAX


def test_a_crashed_compactor_stands_still_and_then_goes_on(page: Page) -> None:
    page.click("article .crash")
    page.wait(lambda: "crashed" in page.text("article .state"))
    assert page.all("article .crash")[0].get_property("disabled")
    page.screenshot("crashed-light-desktop")
    page.wait(lambda: page.text("article .state").startswith("Compactor: "))


def test_a_paused_scene_goes_on_by_single_requests(page: Page) -> None:
    page.wait(lambda: len(page.all("#rows tr")) == 14)
    page.click("#paused")
    page.wait(lambda: page.text("#verdict").startswith("Paused"))
    first = page.text("#rows tr")
    page.click("#step")
    page.wait(lambda: page.text("#rows tr") != first)
    page.click("#paused")
    page.wait(lambda: not page.text("#verdict").startswith("Paused"))


def test_starting_over_forgets_everything(page: Page) -> None:
    page.click("#cut")
    page.wait(lambda: page.number("#truth") > 20)
    page.click("#again")
    page.wait(lambda: page.number("#truth") <= 20)
    assert page.text("#cut") == "Cut the link"


def test_the_requests_shown_are_those_that_are_ticked(page: Page) -> None:
    for box in page.all(".kinds input"):
        if box.is_selected() != (box.get_attribute("value") == "reader"):
            box.click()
    page.wait(lambda: {cell.text for cell in page.all("#rows .who")} == {"reader"})


def test_the_keyboard_reaches_every_control_and_shows_where_it_is(page: Page) -> None:
    page.click("#paused")  # so that Step can be pressed, and nothing moves
    page.wait(lambda: page.text("#verdict").startswith("Paused"))
    controls = page.all("button, input")
    reached = set()
    for _ in range(len(controls) + 1):  # once it leaves the page, and comes in again at its top
        focused = page.tab()
        if focused in controls:
            reached.add(focused)
            assert focused.value_of_css_property("outline-style") == "solid"
    assert reached == set(controls)


def test_every_control_has_a_name(page: Page) -> None:
    assert all(control.accessible_name for control in page.all("button, input"))


@SCHEMES
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_page_is_legible_and_fits_its_window(page: Page, scheme: str, size: tuple[int, int]) -> None:
    page.look(size, scheme, motion="reduce")
    page.click("#cut")
    page.click("article .crash")
    page.wait(lambda: page.number("#truth") > 20 and page.all("[data-place=segments] li"))
    name = f"cut-{scheme}-{'phone' if size == PHONE else 'desktop'}"
    assert page.run("return document.documentElement.scrollWidth") <= size[0]
    assert page.run(TOO_WIDE) == []
    assert page.run(LOW_CONTRAST) == []
    page.screenshot(name)


def test_blocks_move(page: Page) -> None:
    page.wait(lambda: page.run("return document.getAnimations().length"))


def test_nothing_moves_for_a_visitor_who_wants_it_so(page: Page) -> None:
    page.look(motion="reduce")

    def still_until_folded() -> bool:
        assert not page.run("return document.getAnimations().length")
        return bool(page.all("[data-place=segments] li"))

    page.wait(still_until_folded)
