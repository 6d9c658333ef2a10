from tests.browser.page import PHONE, Page


def test_first(page: Page) -> None:
    page.wait(lambda: page.number("#truth") > 20)
    page.screenshot("light-desktop")
    page.look(scheme="dark")
    page.click("#cut")
    page.wait(lambda: page.number("#truth") > 90)
    page.screenshot("dark-desktop")
    page.look(PHONE)
    page.click("#cut")
    page.wait(lambda: page.number("#truth") > 130)
    page.screenshot("light-phone")
