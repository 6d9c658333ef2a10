"""A page whose demo has ended, in a real browser."""

import threading

from selenium.webdriver import Chrome

from lab.live.server import Server
from tests.browser.conftest import Page, log


def test_it_says_how_to_start_the_demo_where_the_page_looks_for_it_and_goes_on_by_itself(driver: Chrome) -> None:
    with Server(0, seed=7) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        page = Page(driver, server.url)
        page.look()
        page.wait(lambda: page.number("#truth") > 5)
        server.shutdown()
    start = f"make demo-web PORT={server.server_port}"
    page.wait(
        lambda: (
            page.text("#problem") == f"The demo has ended. Start it again with {start}; this page goes on by itself."
        )
    )
    page.click("#cut")
    page.wait(lambda: page.text("#problem") == f"The demo does not answer: start it again with {start}.")
    with Server(server.server_port, seed=7) as again:
        threading.Thread(target=again.serve_forever, args=(0.05,)).start()
        page.wait(lambda: page.text("#problem") == "" and page.number("#truth") > 5)
        driver.get("about:blank")
        again.shutdown()
    assert all("ERR_CONNECTION_REFUSED" in each or "ERR_INCOMPLETE" in each for each in log(driver, "browser"))
