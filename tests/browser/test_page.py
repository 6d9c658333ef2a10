"""What a visitor sees and can do on the live page, in a real browser."""

from base64 import b64decode
from io import BytesIO
from pathlib import Path

from PIL import Image
from selenium.webdriver import Keys

from tests.browser.conftest import Page


def test_sliders_a_cut_and_a_crash_do_what_they_say_and_all_begins_anew(page: Page) -> None:
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
    button = page.all("article .crash")[0]
    assert button.get_attribute("aria-disabled") == "true"
    assert page.driver.switch_to.active_element == button
    page.wait(lambda: page.text("article .state").endswith("The crash changed no number."))
    page.click("#again")
    page.wait(lambda: page.number("#truth") <= 20)
    assert page.text("#cut") == "Cut the link"


def test_a_paused_scene_goes_on_by_single_requests_and_the_keyboard_reaches_every_control_and_shows_where_it_is(
    page: Page,
) -> None:
    page.wait(lambda: len(page.all("#rows tr")) == 14)
    page.click("#paused")
    page.wait(lambda: page.text("#verdict").startswith("Paused"))
    first = page.text("#rows tr")
    page.click("#step")
    page.wait(lambda: page.text("#rows tr") != first)
    controls = [control for control in page.all("button, input") if control.is_displayed()]
    assert all(control.accessible_name for control in controls)
    reached = set()
    for _ in range(len(controls) + 1):  # once it leaves the page, and comes in again at its top
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        focused = page.driver.switch_to.active_element
        if focused in controls:
            reached.add(focused)
            assert focused.value_of_css_property("outline-style") == "solid"
    assert reached == set(controls)
    page.click("#paused")
    page.wait(lambda: not page.text("#verdict").startswith("Paused"))


def test_what_teaches_is_on_the_first_screen_and_the_controls_stay(page: Page) -> None:
    """What happens, the cable and what both Regions read of each design; a minus is one."""
    page.look((1440, 900))
    page.wait(lambda: page.number("#truth") > 20 and page.all(".track i"))
    for region in ("eu-west-1", "us-east-1"):
        assert page.bottom(f"[data-region='{region}'] figure") < 900
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    assert "-" not in page.text(".counters")
    page.run("scrollTo(0, 400)")
    page.wait(lambda: 0 < page.bottom("#cut") < 60)


PICTURE = Path(__file__).resolve().parents[2] / "build" / "browser" / "live.webp"
"""For the README: `make browser PICTURE=docs/live.webp` keeps it."""

BYTES_MAX = 2_000_000
SIZE = (960, 750)
EVERY_MS, FRAME_MS, LAST_MS = 700, 250, 5_000
"""A picture of each so many ms of the scene, which is shown for so long; the last one longer."""

ACTS = ((9_000, "#cut"), (16_000, "article .crash"), (26_000, "#cut"), (34_000, "#rest"))
"""What is pressed, and when: cut, crash, heal, rest."""


def test_a_disturbed_page_makes_a_moving_picture_of_less_than_two_megabytes(page: Page) -> None:
    def seen() -> Image.Image:
        return Image.open(BytesIO(b64decode(page.cdp("Page.captureScreenshot")["data"]))).convert("RGB")

    page.look(SIZE)
    page.click("#again")
    frames: list[Image.Image] = []
    acts = list(ACTS)
    while not page.text("#verdict").startswith("At rest"):
        due_ms = len(frames) * EVERY_MS
        page.wait(lambda due_ms=due_ms: int(page.run("return picture.now_ms")) >= due_ms)  # type: ignore[misc]
        if acts and due_ms >= acts[0][0]:
            page.click(acts.pop(0)[1])
        frames.append(seen())
    frames.append(seen())
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    durations = [FRAME_MS] * (len(frames) - 1) + [LAST_MS]
    frames[0].save(PICTURE, save_all=True, append_images=frames[1:], duration=durations, loop=0, quality=50, method=4)
    assert not acts
    assert page.text("#verdict").startswith("At rest: this library equals the truth in both")
    truth = page.number("#truth")
    assert page.values("ours") == [truth, truth] != page.values("atomic")
    assert len(frames) > 50
    assert 100_000 < PICTURE.stat().st_size < BYTES_MAX
