"""A real browser on the live page. `make browser` runs these tests; it says what to install when there is none.

Rule 1: The browser is Debian's, or that of CHROMIUM and CHROMEDRIVER, and is never downloaded.
Rule 2: Whatever it logs or asks of another address fails the test that made it.
Rule 3: A test waits for a condition with a limit, and never for a time.
"""

import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

from lab.live.server import Server
from tests.browser.page import Page

SCREENSHOTS = Path(__file__).resolve().parents[2] / "build" / "browser"
MISSING = "The browser is missing: apt-get install chromium chromium-driver, or set CHROMIUM and CHROMEDRIVER."


@pytest.fixture(scope="session")
def driver() -> Iterator[Chrome]:
    """One headless browser for all tests."""
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium")
    driver = os.environ.get("CHROMEDRIVER") or shutil.which("chromedriver")
    if not browser or not driver:
        pytest.exit(MISSING, returncode=2)
    options = ChromeOptions()
    options.binary_location = browser
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    running = Chrome(options, ChromeService(driver))
    yield running
    running.quit()


@pytest.fixture
def server() -> Iterator[Server]:
    """The page on a free port."""
    with Server(0, seed=7) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def page(driver: Chrome, server: Server) -> Iterator[Page]:
    """The page, loaded; afterwards it has logged nothing and asked nobody else."""
    log(driver, "performance")
    page = Page(driver, server.url, SCREENSHOTS)
    page.look()
    yield page
    logged = log(driver, "browser")
    driver.get("about:blank")
    assert not logged
    assert {url.split("/")[2] for url in asked(driver)} == {server.url.split("/")[2]}


def log(driver: Chrome, kind: str) -> list[str]:
    """What the browser logged since it was last asked."""
    untyped: Any = driver
    return [entry["message"] for entry in untyped.get_log(kind)]


def asked(driver: Chrome) -> list[str]:
    """The addresses that the browser asked for since it was last asked about them."""
    events: list[dict[str, Any]] = [json.loads(message)["message"] for message in log(driver, "performance")]
    urls = (e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent")
    return [url for url in urls if not url.startswith(("about:", "data:"))]
