"""What a visitor sees and can do on the live page, in a real browser."""

from selenium.webdriver import Keys

from tests.browser.conftest import Page

PICTURE_BYTES_MAX = 120_000


def test_after_a_cut_with_lag_and_duplicates_the_page_shows_the_truth_in_both_regions(page: Page) -> None:
    """Much lag, many duplicates and writers, the link cut for a while with changes in both Regions."""
    page.slide("duplicates_percent", Keys.END)
    page.slide("writes_per_s", Keys.END)
    page.slide("lag_ms", Keys.RIGHT, 10)
    page.wait(lambda: page.text("output[for=lag_ms]") == "1,400 ms")
    page.click("#cut")
    page.wait(lambda: page.text("#verdict").startswith("The link is cut"))
    cut_at = page.number("#truth")
    page.wait(lambda: page.number("#truth") > cut_at + 110)
    page.click("#cut")
    page.wait(lambda: page.text("#verdict").startswith("Both Regions count"))
    page.click("#rest")
    page.wait(lambda: page.text("#verdict").startswith("At rest"))
    truth = page.number("#truth")
    assert truth > 100
    assert page.values("ours") == [truth, truth]
    assert page.values("atomic") != [truth, truth]
    assert "this library equals the truth in both Regions" in page.text("#verdict")
    page.look((980, 800))
    page.wait(lambda: page.text("#verdict").startswith("At rest"))
    assert page.screenshot("live", upto="figure").stat().st_size <= PICTURE_BYTES_MAX


def test_a_crashed_compactor_stands_still_and_then_goes_on(page: Page) -> None:
    page.click("article .crash")
    page.wait(lambda: "crashed" in page.text("article .state"))
    assert page.all("article .crash")[0].get_property("disabled")
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


def test_the_keyboard_reaches_every_control_which_has_a_name_and_shows_where_it_is(page: Page) -> None:
    page.click("#paused")  # so that Step can be pressed, and nothing moves
    page.wait(lambda: page.text("#verdict").startswith("Paused"))
    controls = page.all("button, input")
    assert all(control.accessible_name for control in controls)
    reached = set()
    for _ in range(len(controls) + 1):  # once it leaves the page, and comes in again at its top
        focused = page.tab()
        if focused in controls:
            reached.add(focused)
            assert focused.value_of_css_property("outline-style") == "solid"
    assert reached == set(controls)
