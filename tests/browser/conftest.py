"""A real browser on the live page, the console, /try-it and the docs. `make browser` runs these
tests; it says what to install when there is none.

Rule 1: The browser is Debian's, or that of CHROMIUM and CHROMEDRIVER, and is never downloaded.
Rule 2: Whatever it logs or asks of another address fails the test that made it.
Rule 3: A test waits for a condition with a limit, and never for a time.
"""

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any

import pytest
from selenium.webdriver import Chrome, ChromeOptions, ChromeService, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from lab.live.server import Server

MISSING = (
    "The browser is missing: apt-get install chromium chromium-driver, or set CHROMIUM and "
    "CHROMEDRIVER."
)
WAIT_S = 90


class Page:
    """As a visitor sees and uses it: by its labels and texts, its keys and its sizes.

    `look` loads it in a size.
    """

    def __init__(self, driver: Chrome, url: str) -> None:
        self.driver, self.url = driver, url

    def look(self, size: tuple[int, int] = (1280, 1500)) -> None:
        """Load the page in a window of this size, and press a key, so that it does not play."""
        self.watch(size)
        self.press(Keys.SHIFT)

    def watch(self, size: tuple[int, int] = (1280, 1500)) -> None:
        """Load the page in a window of this size, and leave it alone."""
        self.resize(size)
        self.driver.get(self.url)
        self.wait(lambda: len(self.all("article")) == 2)

    def press(self, key: str) -> None:
        self.driver.switch_to.active_element.send_keys(key)

    def resize(self, size: tuple[int, int]) -> None:
        width, height = size
        window = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.cdp("Emulation.setDeviceMetricsOverride", **window)

    def wait(self, holds: Callable[[], object]) -> None:
        """Until it holds, with a limit."""
        WebDriverWait(self.driver, WAIT_S, poll_frequency=0.1).until(lambda _: holds())

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return self.all(selector)[0].text

    def number(self, selector: str) -> int:
        return int(self.text(selector).replace(",", ""))

    def values(self, design: str) -> list[int]:
        """What the page says that each Region reads."""
        return [
            int(value.text.replace(",", ""))
            for value in self.all(f"[data-design='{design}'] .value")
        ]

    def click(self, selector: str) -> None:
        self.all(selector)[0].click()

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def edge(self, selector: str, edge: str = "bottom") -> float:
        """Where an element ends (or begins: left, top), from the window's top left corner."""
        script = "return document.querySelector(arguments[0]).getBoundingClientRect()[arguments[1]]"
        return float(self.run(script, selector, edge))

    def color(self, selector: str) -> str:
        return self._styled(selector, "", "color")

    def _styled(self, selector: str, part: str, name: str) -> str:
        """What the browser computes for an element, once the page has one: it writes some anew."""
        script = """const element = document.querySelector(arguments[0]);
          return element && getComputedStyle(element, arguments[1])[arguments[2]]"""
        found: list[str] = []

        def is_there() -> bool:
            style = self.run(script, selector, part, name)
            found.extend([] if style is None else [str(style)])
            return style is not None

        self.wait(is_there)
        return found[-1]

    def palette(self, name: str) -> str:
        """A colour of the page, as the browser writes it."""
        script = """const probe = document.body.appendChild(document.createElement("i"));
          probe.style.color = `var(${arguments[0]})`;
          const color = getComputedStyle(probe).color;
          probe.remove();
          return color"""
        return str(self.run(script, name))

    def mark(self, selector: str) -> str:
        """What the page writes before an element: a check mark or a cross."""
        return self._styled(selector, "::before", "content").strip('" ')

    def cdp(self, command: str, **arguments: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, arguments)


@pytest.fixture(scope="session")
def driver() -> Iterator[Chrome]:
    """One headless browser for all tests."""
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium")
    driver = os.environ.get("CHROMEDRIVER") or shutil.which("chromedriver")
    if not browser or not driver:
        pytest.exit(MISSING, returncode=2)
    options = ChromeOptions()
    options.binary_location = browser
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    running = Chrome(options, ChromeService(driver))
    yield running
    running.quit()


@pytest.fixture
def page(driver: Chrome) -> Iterator[Page]:
    """The page, loaded; afterwards it has logged nothing and asked nobody else."""
    with Server(0, seed=7) as server, visited(driver, server, server.url):
        page = Page(driver, server.url)
        page.look()
        yield page


@contextmanager
def visited(driver: Chrome, server: ThreadingHTTPServer, url: str) -> Iterator[None]:
    """The server runs; at the end its page has logged nothing and asked nobody else."""
    log(driver, "performance")
    log(driver, "browser")
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield
    logged = log(driver, "browser")
    driver.get("about:blank")
    server.shutdown()
    assert not logged
    events = [json.loads(message)["message"] for message in log(driver, "performance")]
    asked = [
        e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"
    ]
    assert {each.split("/")[2] for each in asked if each.startswith("http")} == {url.split("/")[2]}


def log(driver: Chrome, kind: str) -> list[str]:
    """What the browser logged since it was last asked."""
    untyped: Any = driver
    return [entry["message"] for entry in untyped.get_log(kind)]
