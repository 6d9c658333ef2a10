"""The live page as a visitor sees and uses it: by its labels and texts, its keys and its sizes."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

WAIT_S = 90
DESKTOP = (1280, 1500)


class Page:
    """`look` loads it in a size; the rest is what is on it."""

    def __init__(self, driver: Chrome, url: str, screenshots: Path) -> None:
        self.driver, self._url, self._screenshots = driver, url, screenshots

    def look(self, size: tuple[int, int] = DESKTOP) -> None:
        """Load the page in a window of this size."""
        width, height = size
        self._cdp(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        self.driver.get(self._url)
        self.wait(lambda: len(self.all("article")) == 2)

    def wait(self, holds: Callable[[], object]) -> None:
        """Until it holds, with a limit."""
        WebDriverWait(self.driver, WAIT_S, poll_frequency=0.1).until(lambda _: holds())

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return self.driver.find_element(By.CSS_SELECTOR, selector).text

    def number(self, selector: str) -> int:
        return int(self.text(selector).replace(",", ""))

    def values(self, design: str) -> list[int]:
        """What the page says that each Region reads."""
        return [
            self.number(f"[data-region='{region}'] [data-design='{design}'] .value")
            for region in ("eu-west-1", "us-east-1")
        ]

    def click(self, selector: str) -> None:
        self.driver.find_element(By.CSS_SELECTOR, selector).click()

    def slide(self, name: str, key: str, times: int = 1) -> None:
        """Move a slider by the keyboard."""
        self.driver.find_element(By.ID, name).send_keys(key * times)

    def tab(self) -> WebElement:
        """Press Tab; what has the focus then."""
        self.driver.switch_to.active_element.send_keys(Keys.TAB)
        return self.driver.switch_to.active_element

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def screenshot(self, name: str, *, upto: str = "body") -> Path:
        """A picture of the page from its top down to the end of an element, kept in build/browser."""
        script = "return [innerWidth, document.querySelector(arguments[0]).getBoundingClientRect().bottom + scrollY]"
        width, height = self.run(script, upto)
        clip = {"x": 0, "y": 0, "width": width, "height": int(height) + 8, "scale": 1}
        taken = self._cdp("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        self._screenshots.mkdir(parents=True, exist_ok=True)
        path = self._screenshots / f"{name}.png"
        path.write_bytes(base64.b64decode(taken["data"]))
        return path

    def _cdp(self, command: str, **arguments: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, arguments)
