"""What a visitor can do on the live page, in a real browser."""

from base64 import b64decode
from pathlib import Path

from selenium.webdriver import Keys

from tests.browser.conftest import Page

PICTURE = Path(__file__).resolve().parents[2] / "build" / "browser" / "live.webp"
"""For the README: `make browser PICTURE=docs/live.webp` keeps it."""


def test_what_is_cut_crashed_and_healed_comes_to_rest_and_ours_alone_equals_the_truth(page: Page) -> None:
    for slider, keys in (("duplicates_percent", Keys.END), ("writes_per_s", Keys.END), ("lag_ms", Keys.RIGHT * 10)):
        page.all(f"#{slider}")[0].send_keys(keys)
    page.wait(lambda: page.text("output[for=lag_ms]") == "1,400 ms")
    page.wait(lambda: page.all(".track i"))
    page.click("#cut")
    page.wait(lambda: all("held up" in way.text for way in page.all(".way p")))
    cut_at = page.number("#truth")
    page.wait(lambda: page.number("#truth") > cut_at + 50)
    page.click("article .crash")
    page.wait(lambda: "crashed" in page.text("article .state"))
    page.wait(lambda: page.text("article .state").endswith("The crash changed no number."))
    page.click("#rest")
    page.wait(lambda: page.text("#verdict").startswith("At rest: this library equals the truth in both"))
    truth = page.number("#truth")
    assert page.values("ours") == [truth, truth] != page.values("atomic")
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_bytes(b64decode(page.cdp("Page.captureScreenshot", format="webp", quality=80)["data"]))
    page.click("#again")
    page.wait(lambda: page.number("#truth") <= 20)
    assert page.text("#cut") == "Cut the link"


def test_a_paused_scene_goes_on_by_single_requests_and_the_keyboard_reaches_every_control(page: Page) -> None:
    page.wait(lambda: len(page.all("#rows tr")) == 14)
    page.click("#paused")
    page.wait(lambda: page.text("#verdict").startswith("Paused"))
    first = page.text("#rows tr")
    page.click("#step")
    page.wait(lambda: page.text("#rows tr") != first)
    controls = [control for control in page.all("button, input") if control.is_displayed()]
    reached = set()
    for _ in range(len(controls) + 1):  # once it leaves the page, and comes in again at its top
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        reached.add(page.driver.switch_to.active_element)
    assert reached >= set(controls)
