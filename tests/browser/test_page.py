"""What a visitor sees and can do on the live page, in a real browser."""

import threading

from selenium.webdriver import Chrome, Keys

from lab.live.server import Server
from tests.browser.conftest import Page, log


def test_after_a_cut_with_lag_and_duplicates_the_page_shows_the_truth_in_both_regions(page: Page) -> None:
    """Much lag, many duplicates and writers, the link cut for a while with changes in both Regions."""
    page.slide("duplicates_percent", Keys.END)
    page.slide("writes_per_s", Keys.END)
    page.slide("lag_ms", Keys.RIGHT, 10)
    page.wait(lambda: page.text("output[for=lag_ms]") == "1,400 ms")
    page.click("#cut")
    page.wait(lambda: page.text("#verdict").startswith("The link is cut"))
    cut_at = page.number("#truth")
    page.wait(lambda: page.number("#truth") > cut_at + 110)
    page.click("#cut")
    page.wait(lambda: page.text("#verdict").startswith("Both Regions are"))
    page.click("#rest")
    page.wait(lambda: page.text("#verdict").startswith("At rest"))
    truth = page.number("#truth")
    assert truth > 100
    assert page.values("ours") == [truth, truth]
    assert page.values("atomic") != [truth, truth]
    assert "this library equals the truth in both Regions" in page.text("#verdict")


def test_a_crashed_compactor_keeps_the_focus_stands_still_and_is_back_with_no_number_changed(page: Page) -> None:
    page.click("article .crash")
    page.wait(lambda: "crashed" in page.text("article .state"))
    button = page.all("article .crash")[0]
    assert button.get_attribute("aria-disabled") == "true"
    assert page.driver.switch_to.active_element == button
    page.wait(lambda: page.text("article .state").startswith("Compactor: "))
    assert page.text("article .state").endswith("The crash changed no number.")
    assert page.driver.switch_to.active_element == button


def test_a_paused_scene_stands_still_and_goes_on_by_single_requests(page: Page) -> None:
    page.wait(lambda: len(page.all("#rows tr")) == 14)
    page.click("#paused")
    page.wait(lambda: page.text("#verdict").startswith("Paused"))
    first = page.text("#rows tr")
    page.click("#step")
    page.wait(lambda: page.text("#rows tr") != first)
    page.click("#paused")
    page.wait(lambda: not page.text("#verdict").startswith("Paused"))


def test_starting_over_forgets_everything(page: Page) -> None:
    page.click("#cut")
    page.wait(lambda: page.number("#truth") > 20)
    page.click("#again")
    page.wait(lambda: page.number("#truth") <= 20)
    assert page.text("#cut") == "Cut the link"


def test_the_keyboard_reaches_every_control_which_has_a_name_and_shows_where_it_is(page: Page) -> None:
    page.click("#paused")  # so that Step can be pressed, and nothing moves
    page.wait(lambda: page.text("#verdict").startswith("Paused"))
    controls = [control for control in page.all("button, input") if control.is_displayed()]
    assert all(control.accessible_name for control in controls)
    reached = set()
    for _ in range(len(controls) + 1):  # once it leaves the page, and comes in again at its top
        focused = page.tab()
        if focused in controls:
            reached.add(focused)
            assert focused.value_of_css_property("outline-style") == "solid"
    assert reached == set(controls)


def test_the_cable_carries_items_which_pile_up_red_while_it_is_cut(page: Page) -> None:
    page.wait(lambda: page.all(".track i"))
    page.click("#cut")
    page.wait(lambda: all("held up" in way.text for way in page.all(".way p")))
    page.wait(lambda: all(len(track.find_elements("css selector", "i")) > 5 for track in page.all(".track")))
    red = page.run("return getComputedStyle(document.body).getPropertyValue('--bad')")
    colours = page.run(
        "return [...document.querySelectorAll('.track i')].map((i) => getComputedStyle(i).backgroundColor)"
    )
    assert {"#" + "".join(f"{int(part):02x}" for part in colour[4:-1].split(", ")) for colour in colours} == {red}
    lefts = "[...track.children].map((dot) => parseFloat(dot.style.left))"
    tracks = page.run(f"return [...document.querySelectorAll('.track')].map((track) => {lefts})")
    to_the_left, to_the_right = tracks
    assert max(to_the_right) < 50 < min(to_the_left)


def test_a_page_whose_demo_has_ended_says_how_to_start_it_and_goes_on_by_itself(driver: Chrome) -> None:
    with Server(0, seed=7) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        page = Page(driver, server.url)
        page.look()
        page.wait(lambda: page.number("#truth") > 5)
        server.shutdown()
    start = f"make demo-web PORT={server.server_port}"
    ended = f"The demo has ended. Start it again with {start}; this page goes on by itself."
    page.wait(lambda: page.text("#problem") == ended)
    page.click("#cut")
    page.wait(lambda: page.text("#problem") == f"The demo does not answer: start it again with {start}.")
    with Server(server.server_port, seed=7) as again:
        threading.Thread(target=again.serve_forever, args=(0.05,)).start()
        page.wait(lambda: page.text("#problem") == "" and page.number("#truth") > 5)
        driver.get("about:blank")
        again.shutdown()
    refused = log(driver, "browser")
    assert all("ERR_CONNECTION_REFUSED" in message or "ERR_INCOMPLETE" in message for message in refused)
