"""What a visitor sees and can do on the live page, in a real browser."""

from selenium.webdriver import Keys

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


def test_a_paused_scene_goes_on_by_single_requests(page: Page) -> None:
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


def test_the_requests_shown_are_those_that_are_ticked(page: Page) -> None:
    for box in page.all(".kinds input"):
        if box.is_selected() != (box.get_attribute("value") == "reader"):
            box.click()
    page.wait(lambda: {cell.text for cell in page.all("#rows .who")} == {"reader"})


def test_the_keyboard_reaches_every_control_which_has_a_name_and_shows_where_it_is(page: Page) -> None:
    page.click("#paused")  # so that Step can be pressed, and nothing moves
    page.wait(lambda: page.text("#verdict").startswith("Paused"))
    controls = [each for each in page.all("button, input, nav a, summary") if each.is_displayed()]
    assert all(control.accessible_name for control in controls if control.tag_name != "summary")
    reached = set()
    for _ in range(len(controls) + 1):  # once it leaves the page, and comes in again at its top
        focused = page.tab()
        if focused in controls:
            reached.add(focused)
            assert focused.value_of_css_property("outline-style") == "solid"
    assert reached == set(controls)


def test_a_second_tab_that_asks_for_another_seed_changes_the_links_of_the_first_one(page: Page) -> None:
    page.wait(lambda: page.driver.current_url.endswith("/?story=counter&seed=7"))
    page.run("ask({ begin: { story: 'counter', seed: 12 } })")
    page.wait(lambda: page.driver.current_url.endswith("/?story=counter&seed=12"))
    links = [str(each.get_attribute("href")) for each in page.all("nav a")]
    assert [link.partition("?")[2] for link in links] == ["story=counter&seed=12", "story=sale&seed=12"]


def test_the_story_runs_by_itself_and_its_steps_can_be_told_by_hand(page: Page) -> None:
    assert [each.text for each in page.all("#steps button")] == ["count", "cut", "crash", "heal", "rest"]
    assert page.text("#steps [aria-current]") == "count"
    page.wait(lambda: page.text("#steps [aria-current]") == "cut")
    assert page.text("#tell") == "Stop here"
    page.click("#next")
    page.wait(lambda: page.text("#steps [aria-current]") == "crash")
    assert page.text("#tell") == "Go on by itself"
    page.click("#steps li:last-child button")
    page.wait(lambda: "Nobody buys any more" in page.text("#caption"))
    page.wait(lambda: page.text("#tell") == "Tell it again")
    assert page.text("#verdict").startswith("At rest")


def test_the_cable_carries_items_which_pile_up_red_while_it_is_cut(page: Page) -> None:
    page.wait(lambda: page.all(".track i"))
    page.click("#cut")
    page.wait(lambda: all("held up" in each.text for each in page.all(".way p")))
    page.wait(lambda: all(len(each.find_elements("css selector", "i")) > 5 for each in page.all(".track")))
    red = page.run("return getComputedStyle(document.body).getPropertyValue('--bad')")
    colours = page.run(
        "return [...document.querySelectorAll('.track i')].map((i) => getComputedStyle(i).backgroundColor)"
    )
    assert {"#" + "".join(f"{int(part):02x}" for part in each[4:-1].split(", ")) for each in colours} == {red}
    lefts = "[...track.children].map((dot) => parseFloat(dot.style.left))"
    tracks = page.run(f"return [...document.querySelectorAll('.track')].map((track) => {lefts})")
    to_the_left, to_the_right = tracks
    assert max(to_the_right) < 50 < min(to_the_left)


def test_add_goes_wrong_while_it_happens_and_says_why(page: Page) -> None:
    """Judged by what its Region can know, in the story's first step."""
    add = "[data-design='atomic'][data-mood='off']"
    page.wait(lambda: page.all(add) and "overwritten" in page.text(f"{add} .why"))
    assert page.text("#steps [aria-current]") == "count"
    page.wait(lambda: page.text("[data-design='ours'] .note") == "all it can know")


def test_the_flash_sale_ends_at_zero_and_the_conditional_add_has_oversold(page: Page) -> None:
    page.open("?story=sale&seed=3")
    page.wait(lambda: page.text("#head-label") == "Seats")
    page.slide("writes_per_s", Keys.END)
    page.click("#steps li:nth-child(2) button")
    page.slide("writes_per_s", Keys.END)
    page.wait(lambda: "oversold by" in page.text("[data-design='atomic'] .why"))
    page.click("#steps li:nth-child(3) button")
    page.wait(lambda: page.values("ours") == [0, 0])
    page.click("#rest")
    page.wait(
        lambda: page.text("#verdict").startswith("The sale is over: this library promised 200 of 200 seats, 0 left")
    )
    assert "more than there are" in page.text("#verdict")


def test_the_address_names_the_story_and_the_seed_and_opens_them(page: Page) -> None:
    page.wait(lambda: page.driver.current_url.endswith("/?story=counter&seed=7"))
    page.open("?story=sale&seed=12")
    page.wait(lambda: page.text("nav [aria-current]") == "A flash sale")
    assert page.driver.current_url.endswith("/?story=sale&seed=12")
    page.click("nav a")
    page.wait(lambda: page.driver.current_url.endswith("/?story=counter&seed=12") and page.all(".lane"))


def test_an_address_of_no_story_is_answered_with_a_sentence_and_what_ran_goes_on(page: Page) -> None:
    for address, says in (
        ("?story=war", "There is no story 'war'; there are counter and sale."),
        ("?seed=x", "A seed is a whole number from 0 to 2,147,483,647, not 'x'."),
        ("?seed=1.5", "A seed is a whole number"),
    ):
        page.open(address)
        page.wait(lambda says=says: page.text("#problem").startswith(says))  # type: ignore[misc]
        page.wait(lambda: page.driver.current_url.endswith("/?story=counter&seed=7"))
        page.run("console.clear()")
    refused = log(page.driver, "browser")
    assert len(refused) == 3
    assert all("400 (Bad Request)" in each for each in refused)
