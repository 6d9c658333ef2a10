"""The page at /try-it, on a phone and in a wide window, light and dark, and its forms."""

import io
import json
import re

import pytest
from selenium.webdriver import Chrome, Keys

from service.api.app import TRY_IT, Api
from service.api.local import serve
from service.observe import Watch
from tests.browser.conftest import Page, visited

SIZES = ((390, 844), (1440, 900))


# Powertools leaves its files open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size[0]))
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_to_try_it_fits(driver: Chrome, size: tuple[int, int], scheme: str) -> None:
    api = Api.in_memory(Watch.here("api", io.StringIO()), try_it=True)
    with serve(api, 0) as server:
        url = f"http://127.0.0.1:{server.server_port}{TRY_IT}"
        with visited(driver, server, url):
            page = Page(driver, url)
            media = {"name": "prefers-color-scheme", "value": scheme}
            page.cdp("Emulation.setEmulatedMedia", features=[media])
            page.resize(size)
            driver.get(url)
            page.wait(lambda: len(page.all(".opblock-summary-control")) > 10)
            assert page.run(WIDE) == []
            page.run(OPEN_ALL)
            page.wait(lambda: page.all(".try-out__btn"))
            page.click(".try-out__btn")
            page.wait(lambda: page.all(".execute"))
            assert page.run(WIDE) == []
            body = page.run("return getComputedStyle(document.documentElement).backgroundColor")
            shades = [int(shade) for shade in re.findall(r"\d+", body)]
            assert (len(shades) == 3 and sum(shades) < 384) is (scheme == "dark")
            page.cdp("Emulation.setEmulatedMedia", features=[])


# Powertools leaves its files open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("operation", "answer"),
    [
        ("add", '"outcome": "recorded"'),
        ("addMany", '"outcome": "recorded"'),
        ("hold", '"until": "'),
        ("reserve", '"until": "'),
        ("transfer", '"outcome": "moved"'),
        ("readAny", '"value": 0'),
    ],
)
def test_the_api_takes_what_a_form_contains(driver: Chrome, operation: str, answer: str) -> None:
    """By the keyboard alone. Some need the counter's name, and nothing else has to change."""
    api = Api.in_memory(Watch.here("api", io.StringIO()), try_it=True)
    with serve(api, 0) as server:
        url = f"http://127.0.0.1:{server.server_port}{TRY_IT}"
        with visited(driver, server, url):
            page = Page(driver, url)
            driver.get(url)
            form = f"[id$='-{operation}']"

            def press(button: str) -> None:
                page.wait(lambda: page.all(f"{form} {button}"))
                page.all(f"{form} {button}")[0].send_keys(Keys.ENTER)

            press(".opblock-summary-control")
            press(".try-out__btn")
            page.wait(lambda: page.all(f"{form} .execute"))
            texts = [str(box.get_attribute("value")) for box in page.all(f"{form} textarea")]
            body = json.loads(texts[0]) if texts else {"counter": "page-views"}
            for name in page.all(f"{form} input[placeholder=counter]"):
                name.send_keys(body["counter"])
            press(".execute")
            answers = f"{form} .live-responses-table"
            page.wait(lambda: page.all(answers))
            assert answer in page.text(answers)


OPEN_ALL = "for (const box of document.querySelectorAll('.opblock-summary-control')) box.click()"
WIDE = """
  const right = document.documentElement.clientWidth + 1;
  const wide = [...document.querySelectorAll("body *")]
    .filter((box) => box.checkVisibility() && box.getBoundingClientRect().right > right);
  const page = document.documentElement.scrollWidth > innerWidth ? ["the page"] : [];
  return [...page, ...wide.map((box) => box.className)];
"""
"""What stands out of the window at its right."""
