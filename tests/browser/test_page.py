"""What a visitor sees and can do on the live page, in a real browser."""

from base64 import b64decode
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from selenium.webdriver import Keys

from ledger.lane.add import add
from tests.browser.conftest import Page


def test_a_slider_a_cut_and_a_crash_do_what_they_say(page: Page) -> None:
    for slider, keys in (
        ("duplicates_percent", Keys.END),
        ("writes_per_s", Keys.END),
        ("lag_ms", Keys.RIGHT * 10),
    ):
        page.all(f"#{slider}")[0].send_keys(keys)
    page.wait(lambda: page.text("output[for=lag_ms]") == "1,000 ms")
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


def test_a_paused_scene_goes_on_by_requests_and_by_keyboard(
    page: Page,
) -> None:
    page.wait(lambda: len(page.all("#rows tr")) == 14)
    page.click("#paused")
    page.wait(lambda: page.text("#verdict").startswith("Paused"))
    first = page.text("#rows tr")
    page.click("#step")
    page.wait(lambda: page.text("#rows tr") != first)
    controls = [control for control in page.all("button, input, summary") if control.is_displayed()]
    assert all(control.accessible_name for control in controls)
    reached = set()
    for _ in range(len(controls) + 1):  # once it leaves the page, and comes in again at its top
        page.press(Keys.TAB)
        focused = page.driver.switch_to.active_element
        if focused in controls:
            reached.add(focused)
            assert focused.value_of_css_property("outline-style") == "solid"
    assert reached == set(controls)
    page.click("#paused")
    page.wait(lambda: not page.text("#verdict").startswith("Paused"))


def test_a_first_screen_has_what_teaches_and_the_controls(page: Page) -> None:
    """What happens, the sale, the cable and what both Regions read of each design; on a phone, too.

    A minus is one.
    """
    page.click("#cut")
    for size in PHONE, WIDE:
        page.look(size)
        page.wait(lambda: page.number("#truth") > 20 and page.all(".track i"))
        words = page.all(".buttons button span, #play span")
        assert all(word.is_displayed() and word.size["width"] > 20 for word in words)
        for region in ("eu-west-1", "us-east-1"):
            assert page.edge(f"[data-region='{region}'] figure svg") < size[1]
        assert not overflowing(page)
    assert "-" not in page.text(".counters")
    page.run("scrollTo(0, 400)")
    page.wait(lambda: 0 < page.edge("#cut") < 60)


def test_the_end_is_three_verdicts_in_their_colours(
    page: Page,
) -> None:
    page.look(PHONE)
    page.wait(lambda: page.number("#truth") > 0)
    began = page.edge("#regions", "top")
    assert [button.accessible_name for button in page.all(".buttons button")][:2] == [
        "Cut the link",
        "Let it rest",
    ]
    assert (step(page), page.all("#why summary")[0].is_displayed()) == ("Count", False)
    page.click("#cut")
    page.wait(lambda: beyond(page, "atomic") > 20)
    assert step(page) == "Cut"
    assert beyond(page, "ours") == 0
    assert (
        page.number("[data-design='atomic'] .sold")
        > 100
        >= page.number("[data-design='ours'] .sold")
    )
    page.click("#rest")
    page.wait(lambda: page.all("#verdicts li"))
    truth = page.text("#truth")
    assert page.text("#verdicts").startswith(f"{truth} = {truth}\nthis library: the truth")
    for selector, mark, color in (
        ("li:first-child", "✓", "--good"),
        ("li:last-child", "✗", "--bad"),
    ):
        assert page.mark(f"#verdicts {selector} strong") == mark
        assert page.color(f"#verdicts {selector}") == page.palette(color)
    assert step(page) == "Verdict"
    assert page.edge("#regions", "top") == began
    assert not page.all("#why dl")[0].is_displayed()
    for size in WIDE, *SMALL, PHONE:
        page.resize(size)
        assert not overflowing(page)
    page.all("#why summary")[0].send_keys(Keys.ENTER)
    page.wait(lambda: page.all("#why dl")[0].is_displayed())
    assert not overflowing(page)


def test_a_wrong_library_has_a_red_verdict(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "lab.designs.item_collection.add",
        lambda delta: add(replace(delta, change=delta.change + 1)),
    )
    page.wait(lambda: page.number("#truth") > 10)
    page.click("#rest")
    page.wait(lambda: page.all("#verdicts li"))
    light = page.color("body")
    page.cdp(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}]
    )
    page.wait(lambda: page.color("body") != light)
    assert page.mark("#verdicts li strong") == "✗"
    assert page.color("#verdicts li") == page.palette("--bad")
    page.cdp("Emulation.setEmulatedMedia", features=[])


def beyond(page: Page, design: str) -> float:
    """How far the seats that a design sold stand out of the hall."""
    box = f".sale [data-design='{design}']"
    return page.edge(f"{box} .over", "right") - page.edge(f"{box} .hall", "right")


def step(page: Page) -> str:
    return page.text("#steps [aria-current]")


def overflowing(page: Page) -> list[str]:
    """What stands out of the window, or out of a box that it is in, at its right."""
    return list(
        page.run(
            """
            const page = document.documentElement;
            const right = (box) => box.getBoundingClientRect().right;
            const cut = [...document.querySelectorAll("main :is(p, strong, span, li, button, dd)")]
              .filter((box) => box.checkVisibility() && !box.closest("table, button"))
              .filter((box) => right(box) > right(box.closest(".card") ?? document.body));
            const wide = page.scrollWidth > innerWidth ? ["the page"] : [];
            return [...cut.map((box) => box.textContent), ...wide];
            """
        )
    )


PHONE, WIDE = (390, 844), (1440, 900)
SMALL = (360, 740), (320, 640), (195, 422)
"""Smaller phones, and a phone on which everything is twice as large."""


def test_a_text_stands_out_light_and_dark(page: Page) -> None:
    page.wait(lambda: page.all("#rows tr"))
    for scheme in "light", "dark":
        media = {"name": "prefers-color-scheme", "value": scheme}
        page.cdp("Emulation.setEmulatedMedia", features=[media])
        assert page.run(PALE) == []
    page.cdp("Emulation.setEmulatedMedia", features=[])


PALE = """
  const shades = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (color) => color.slice(0, 3).map((shade) => shade / 255)
    .map((shade) => (shade <= 0.04045 ? shade / 12.92 : ((shade + 0.055) / 1.055) ** 2.4))
    .reduce((sum, shade, at) => sum + shade * [0.2126, 0.7152, 0.0722][at], 0.05);
  const ups = (box) => (box ? [box, ...ups(box.parentElement)] : []);
  const contrast = (box) => {
    const behind = ups(box).map((up) => shades(getComputedStyle(up).backgroundColor));
    const back = behind.find((color) => (color[3] ?? 1) === 1);
    const opacity = ups(box).reduce((all, up) => all * getComputedStyle(up).opacity, 1);
    const ink = shades(getComputedStyle(box).color)
      .map((shade, at) => shade * opacity + back[at] * (1 - opacity));
    const [dark, bright] = [light(ink), light(back)].sort((one, other) => one - other);
    return bright / dark;
  };
  const isText = (node) => node.nodeType === Node.TEXT_NODE && node.data.trim();
  return [...document.querySelectorAll("body *")]
    .filter((box) => box.checkVisibility() && [...box.childNodes].some(isText))
    .filter((box) => contrast(box) < 4.5)
    .map((box) => box.textContent);
"""
"""Texts whose contrast is too low for a reader with weak eyes."""


def test_a_click_or_a_key_stops_the_play(page: Page) -> None:
    def plays() -> bool:
        return page.text("#play") == "Stop"

    assert (plays(), page.text("#next")) == (False, "")
    for stop in (
        partial(page.click, "#play"),
        partial(page.click, "h1"),
        partial(page.press, Keys.TAB),
        partial(page.all("#lag_ms")[0].send_keys, Keys.RIGHT),
    ):
        page.click("#play")
        page.wait(plays)
        assert page.text("#next").startswith("Next: cut the link, in")
        stop()
        assert not plays()
    page.click("#paused")
    page.wait(lambda: page.text("#verdict") == "Paused.")
    page.all("#play")[0].send_keys(Keys.ENTER)
    page.wait(lambda: step(page) == "Cut")
    assert plays()


def test_a_page_without_motion_does_not_begin_to_play(page: Page) -> None:
    page.watch()
    page.wait(lambda: page.text("#next").startswith("Plays by itself in"))
    reduce = {"name": "prefers-reduced-motion", "value": "reduce"}
    page.cdp("Emulation.setEmulatedMedia", features=[reduce])
    page.wait(lambda: page.text("#next") == "")
    page.cdp("Emulation.setEmulatedMedia", features=[])


def test_a_tab_that_nobody_sees_waits(page: Page) -> None:
    """Otherwise the play would be over when its visitor comes back."""
    page.watch()
    page.wait(lambda: page.number("#truth") > 0)
    first = page.driver.current_window_handle
    page.driver.switch_to.new_window("tab")
    page.watch()
    page.wait(lambda: page.text("#next").startswith("Next: cut the link"))
    page.click("h1")
    page.driver.close()
    page.driver.switch_to.window(first)
    page.wait(lambda: page.text("#next") in ("Plays by itself in 10 s", "Plays by itself in 9 s"))
    assert step(page) == "Count"


PICTURE = Path(__file__).resolve().parents[2] / "build" / "browser" / "live.webp"
"""For the README: `make browser PICTURE=docs/live.webp` keeps it."""

BYTES_MAX = 600_000
SIZE = (960, 750)
EVERY_MS, FRAME_MS, LAST_MS = 1_000, 350, 5_000
"""A picture of each so many ms of the scene, which is shown for so long; the last one longer."""


def test_a_page_that_plays_itself_makes_a_small_moving_picture(page: Page) -> None:
    def seen() -> Image.Image:
        return Image.open(BytesIO(b64decode(page.cdp("Page.captureScreenshot")["data"]))).convert(
            "RGB"
        )

    def has_come_to(due_ms: int) -> bool:
        return int(page.run("return picture.now_ms")) >= due_ms

    page.watch(SIZE)
    page.wait(lambda: page.number("[data-design='atomic'] .sold") > 100)
    began_ms = int(page.run("return picture.now_ms"))
    frames: list[Image.Image] = []
    announced: list[str] = []
    while step(page) != "Verdict":
        page.wait(partial(has_come_to, began_ms + len(frames) * EVERY_MS))
        frames.append(seen())
        announced.append(page.text("#next"))
    page.wait(lambda: page.text("#play") == "Play")
    frames.append(seen())
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    durations = [FRAME_MS] * (len(frames) - 1) + [LAST_MS]
    frames[0].save(
        PICTURE,
        save_all=True,
        append_images=frames[1:],
        duration=durations,
        loop=0,
        quality=45,
        method=4,
        minimize_size=True,
    )
    for words in "Next: heal the link, in ", "Next: let it rest, in ", "Verdict in at most ":
        assert any(text.startswith(words) for text in announced)
    assert page.text("#verdicts").startswith(f"{page.text('#truth')} = ")
    truth = page.number("#truth")
    assert page.values("ours") == [truth, truth] != page.values("atomic")
    assert len(frames) > 20
    assert 100_000 < PICTURE.stat().st_size < BYTES_MAX
