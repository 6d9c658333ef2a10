"""What a visitor sees and can do on the live page, in a real browser."""

from base64 import b64decode
from io import BytesIO
from pathlib import Path

from PIL import Image
from selenium.webdriver import Keys

from tests.browser.conftest import Page


def test_sliders_pause_and_step_do_what_they_say_and_all_begins_anew(page: Page) -> None:
    for slider, keys in (("duplicates_percent", Keys.END), ("writes_per_s", Keys.END), ("lag_ms", Keys.RIGHT * 10)):
        page.all(f"#{slider}")[0].send_keys(keys)
    page.wait(lambda: page.text("output[for=lag_ms]") == "1,400 ms")
    page.wait(lambda: page.number("#truth") > 50)
    page.click("#paused")
    page.wait(lambda: page.text("#verdict").startswith("Paused"))
    first = page.text("#rows tr")
    page.click("#step")
    page.wait(lambda: page.text("#rows tr") != first)
    page.click("#again")
    page.wait(lambda: page.number("#truth") <= 20)


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
