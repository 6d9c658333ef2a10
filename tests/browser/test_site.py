"""The pages that `make docs` builds, in a real browser."""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from tests.browser.conftest import Page, visited
from tests.docs.built import build_site

FIRST = {
    "oversell": "recipes/stock.html",
    "double spend": "recipes/wallet.html",
    "wallet": "recipes/wallet.html",
    "rate limit": "recipes/quota.html",
    "quota": "recipes/quota.html",
    "exactly once": "retries.html",
    "retry": "retries.html",
    "idempotency": "retries.html",
    "idempotent": "retries.html",
    "duplicate": "retries.html",
    "pip install": "index.html",
}
"""What people search for, and the first page that they are shown."""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """The terminal stays calm."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(tmp_path_factory.mktemp("site"))


@pytest.fixture
def site(driver: Chrome, folder: Path) -> Iterator[Page]:
    serve = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        url = f"http://127.0.0.1:{server.server_port}/"
        with visited(driver, server, url):
            yield Page(driver, url)


def test_a_search_shows_first_the_page_about_its_words(site: Page) -> None:
    site.resize((1440, 900))
    for words, page in FIRST.items():
        site.driver.get(f"{site.url}index.html?q={words}")
        site.wait(lambda: site.all(RESULT))
        assert str(site.all(RESULT)[0].get_attribute("href")).split("?")[0] == site.url + page


RESULT = ".md-search-result__item > a"


def test_every_page_fits_a_phone_and_is_dark_by_the_system(site: Page, folder: Path) -> None:
    """Without a click. A table or code scrolls by itself."""
    site.cdp("Emulation.setEmulatedMedia", features=[DARK])
    site.resize((390, 844))
    for page in folder.rglob("*.html"):
        site.driver.get(site.url + str(page.relative_to(folder)))
        assert site.run("return document.documentElement.scrollWidth") == 390
        assert site.run(SCHEME) == "slate"
        site.wait(partial(site.run, COPIES))
    site.cdp("Emulation.setEmulatedMedia", features=[])
    site.wait(lambda: site.run(SCHEME) == "default")


DARK = {"name": "prefers-color-scheme", "value": "dark"}
SCHEME = "return document.body.dataset.mdColorScheme"
COPIES = """
  return [...document.querySelectorAll(".highlight")].every((code) => code.querySelector("button"))
"""
"""Whether all code has a button that copies it."""
