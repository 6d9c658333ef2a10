"""The story of the counter as a moving picture for the README: screenshots of the page, told by itself to its end.

`make picture` runs this and copies it to docs/live.webp.
"""

from io import BytesIO

from PIL import Image, ImageSequence

from tests.browser.conftest import Page

BYTES_MAX = 2_000_000
SIZE = (960, 940)
EVERY_MS, FRAME_MS, LAST_MS = 700, 250, 5_000
"""A picture of each so many ms of the scene, which is shown for so long; the last one longer."""


def test_the_story_makes_a_moving_picture_of_less_than_two_megabytes(page: Page) -> None:
    page.look(SIZE)
    page.open()
    page.click("#again")
    page.run(
        "scrollTo(0, document.querySelector('.story').offsetTop - document.querySelector('.controls').offsetHeight)"
    )
    frames: list[Image.Image] = []
    steps: list[str] = []
    while not steps or page.text("#tell") != "Tell it again":
        due_ms = len(frames) * EVERY_MS
        page.wait(lambda due_ms=due_ms: int(page.run("return picture.now_ms")) >= due_ms)  # type: ignore[misc]
        frames.append(Image.open(BytesIO(page.as_seen())).convert("RGB"))
        step = page.text("#steps [aria-current]")
        steps += [step] if step not in steps else []
    path = page.screenshots / "live.webp"
    durations = [FRAME_MS] * (len(frames) - 1) + [LAST_MS]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=durations, loop=0, quality=50, method=4)
    assert steps == ["count", "cut", "crash", "heal", "rest"]
    assert page.text("#verdict").startswith("At rest: this library equals the truth in both")
    with Image.open(path) as picture:
        assert picture.size == SIZE
        kept = sum(1 for _ in ImageSequence.Iterator(picture))  # of equal ones, one
    assert 50 < kept <= len(frames)
    assert 100_000 < path.stat().st_size < BYTES_MAX
