"""The live page as a moving picture for the README: screenshots while it is disturbed, until it is at rest.

`make browser PICTURE=docs/live.webp` keeps it.
"""

from io import BytesIO

from PIL import Image, ImageSequence

from tests.browser.conftest import SCREENSHOTS, Page

BYTES_MAX = 2_000_000
SIZE = (960, 750)
EVERY_MS, FRAME_MS, LAST_MS = 700, 250, 5_000
"""A picture of each so many ms of the scene, which is shown for so long; the last one longer."""

ACTS = ((9_000, "#cut"), (16_000, "article .crash"), (26_000, "#cut"), (34_000, "#rest"))
"""What is pressed, and when: cut, crash, heal, rest."""


def test_a_disturbed_page_makes_a_moving_picture_of_less_than_two_megabytes(page: Page) -> None:
    page.look(SIZE)
    page.click("#again")
    frames: list[Image.Image] = []
    acts = list(ACTS)
    while not page.text("#verdict").startswith("At rest"):
        due_ms = len(frames) * EVERY_MS
        page.wait(lambda due_ms=due_ms: int(page.run("return picture.now_ms")) >= due_ms)  # type: ignore[misc]
        if acts and due_ms >= acts[0][0]:
            page.click(acts.pop(0)[1])
        frames.append(Image.open(BytesIO(page.as_seen())).convert("RGB"))
    frames.append(Image.open(BytesIO(page.as_seen())).convert("RGB"))
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    path = SCREENSHOTS / "live.webp"
    durations = [FRAME_MS] * (len(frames) - 1) + [LAST_MS]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=durations, loop=0, quality=50, method=4)
    assert not acts
    assert page.text("#verdict").startswith("At rest: this library equals the truth in both")
    with Image.open(path) as picture:
        assert picture.size == SIZE
        kept = sum(1 for _ in ImageSequence.Iterator(picture))  # of equal ones, one
    assert 50 < kept <= len(frames)
    assert 100_000 < path.stat().st_size < BYTES_MAX
