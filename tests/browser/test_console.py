"""What a visitor sees and can do in the console, in a real browser, by mouse and by keyboard."""

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from selenium.webdriver import Chrome, Keys

from ledger import Ledger, Settings
from ledger.tables.memory import MemoryTable
from ledgerctl.call import Call
from ledgerctl.console.server import Server
from ledgerctl.surroundings import Surroundings
from tests.browser.conftest import Page, visited

REGIONS = ("eu-west-1", "us-east-1")
ENVIRON = {
    "LEDGER_TABLE": "counters",
    "AWS_REGION": REGIONS[0],
    "LEDGER_REGIONS": ",".join(REGIONS),
    "LEDGER_LIMITS": json.dumps(
        {"seats:": {"ceiling": 100, "region": REGIONS[0]}, "stock:": {"floor": 0}}
    ),
    "LEDGER_PERIODS": '{"calls:": {"late_s": 3600, "keep_s": 34560000}}',
}
OPTIONS = dict.fromkeys(("table", "region", "regions", "endpoint_url", "profile"))
SIZES = ((390, 844), (768, 1024), (1440, 1000))
PICTURES = Path("build/browser")


def sold() -> MemoryTable:
    """Forty days of a shop."""
    table = MemoryTable()
    table.peers = {REGIONS[1]: table}
    settings = Settings.from_env(ENVIRON)
    ledger, now, random = Ledger(settings, table=table), datetime.now(UTC), Random(3)
    for day in range(40):
        for n in range(random.randrange(3, 9)):
            at = now - timedelta(days=day, hours=random.randrange(24), minutes=n)
            region = random.choice(REGIONS)
            key = f"{day}/{n}"
            ledger.add(
                "page-views", random.randrange(1, 60), idempotency_key=key, at=at, region=region
            )
    for n in range(3):
        ledger.add("seats:gig", 25 + n, idempotency_key=f"{n}", at=now - timedelta(days=n))
    ledger.hold("seats:gig", 6, expires=timedelta(hours=1))
    ledger.add("stock:85123A", 12)
    ledger.add("large", 10**18, idempotency_key="a", at=now)
    ledger.add("large", 7, idempotency_key="b", at=now)
    old = datetime(2010, 12, 1, 8, 26, tzinfo=UTC)
    ledger.add("old", 4, idempotency_key="536365/1", at=old)
    ledger.add(f"calls:k1@{now:%Y-%m}", 5)
    return table


class Console(Page):
    def look(self, size: tuple[int, int] = (1440, 1000), counter: str = "") -> None:
        self.resize(size)
        self.driver.get("about:blank")
        self.driver.get(f"{self.url}#{counter.replace(':', '%3A').replace('@', '%40')}")
        self.settled()

    def texts(self, selector: str) -> list[str]:
        """At one moment: the page replaces its rows when an answer comes."""
        script = "return [...document.querySelectorAll(arguments[0])].map((node) => node.innerText)"
        return list(self.run(script, selector))

    def text(self, selector: str) -> str:
        return self.texts(selector)[0]

    def settled(self) -> None:
        """Until every read that began has its cost."""
        reads = "return document.body.innerText.includes('Reading')"
        self.wait(lambda: self.all("#list li") and not self.run(reads))

    def dark(self, on: bool) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
        self.cdp("Emulation.setEmulatedMedia", features=[scheme])

    @property
    def overflow(self) -> int:
        return int(self.run("return document.documentElement.scrollWidth - innerWidth"))


@pytest.fixture
def console(driver: Chrome) -> Iterator[Console]:
    world = Surroundings(environ=ENVIRON, tables=dict.fromkeys(REGIONS, sold()))
    with (
        Server(Call(world, OPTIONS | {"json": False}), 0, 4_096) as server,
        visited(driver, server, server.url),
    ):
        page = Console(driver, server.url)
        page.look()
        yield page
        page.dark(False)


def names(console: Console) -> list[str]:
    return [row.split("\n")[0] for row in console.texts("#list li span")]


def test_a_list_is_narrowed_and_a_counter_is_chosen(console: Console) -> None:
    assert names(console)[0].startswith("calls:k1@")
    assert console.text("#list li:nth-child(3)").split() == ["large", "1,000,000,000,000,000,007"]
    assert "4,096 read units" in console.text("#about")
    console.all("#prefix")[0].send_keys("se", Keys.ENTER)
    console.wait(lambda: len(console.all("#list li")) == 1)
    console.click("#list li a")
    console.wait(lambda: console.text(".big") == "78")
    console.settled()
    assert console.text(".side p") == "16 left to the ceiling of 100"
    assert console.text(".side dl").split()[-2:] == ["Held", "6"]
    assert console.driver.title == "seats:gig"
    assert [part.text for part in console.all("#counter h2") if part.is_displayed()] == [
        "What its limit has left",
        "What changed",
        "Last changes",
        "Holds",
        "Lanes",
    ]


def test_each_part_says_what_it_may_take_and_what_it_took(console: Console) -> None:
    console.look(counter="seats:gig")
    costs = console.texts(":is(#list, #counter > :not([hidden])) .cost")
    assert len(costs) == 7
    assert {*costs} == {"It took no requests to DynamoDB.", "At most 4,096 read units."}
    console.click("[data-view=holds] summary")
    console.settled()
    (row,) = console.texts("[data-view=holds] tbody tr")
    assert "+6" in row
    assert console.text("[data-view=holds] .cost").startswith("It took")


def test_a_chart_has_steps_a_table_and_a_past(console: Console) -> None:
    console.look(counter="page-views")
    assert console.all("#plot canvas")
    console.click("#chart summary")
    assert len(console.all("#chart details tbody tr")) == 30
    total = sum(
        int(text.replace("+", "").replace(",", ""))
        for text in console.texts("#chart details tbody td:nth-child(2)")
    )
    assert 0 < total < console.number(".big")
    console.click("[value=month]")
    console.wait(lambda: len(console.all("#chart details tbody tr")) == 24)
    assert console.texts("#chart details tbody td:last-child")[-1] == console.text(".big")
    console.click("[value=day]")
    console.wait(lambda: len(console.all("#chart details tbody tr")) == 30)
    first = console.text("#chart details tbody td")
    console.click("#earlier")
    console.wait(lambda: console.text("#chart details tbody td") != first)
    console.click("#later")
    console.wait(lambda: console.text("#chart details tbody td") == first)


def test_a_chart_of_old_changes_begins_where_they_are(console: Console) -> None:
    console.look(counter="old")
    console.click("#chart summary")
    assert "+4" in console.texts("#chart details tbody td:nth-child(2)")
    assert "2010" in console.text("[data-view=changes] tbody tr")


def test_periods_lead_to_each_other(console: Console) -> None:
    console.look(counter=names(console)[0])
    console.click("[data-view=periods] summary")
    console.settled()
    assert len(console.all("[data-view=periods] tbody tr")) == 12
    console.click("[data-view=periods] tbody tr:nth-child(3) a")
    console.wait(lambda: console.text("#counter .big") == "0")
    console.settled()


def test_the_keyboard_reaches_and_shows_all(console: Console) -> None:
    console.look(counter="page-views")
    controls = [c for c in console.all("a, button, input, summary") if c.is_displayed()]
    wanted = {c for c in controls if c.is_enabled() and c.get_attribute("type") != "radio"}
    assert all(c.accessible_name for c in controls)
    reached = set()
    for _ in range(len(controls) + 2):
        console.driver.switch_to.active_element.send_keys(Keys.TAB)
        focused = console.driver.switch_to.active_element
        if focused in wanted:
            reached.add(focused)
            assert focused.value_of_css_property("outline-style") == "solid"
    assert reached == wanted
    console.all("[value=day]")[0].send_keys(Keys.RIGHT)
    console.wait(lambda: console.all("[value=week]:checked"))
    console.settled()
    console.all("[data-view=lag] summary")[0].send_keys(Keys.ENTER)
    console.wait(lambda: len(console.all("[data-view=lag] tbody tr")) == 2)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size[0]))
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_page_fits_light_and_dark(console: Console, size: tuple[int, int], dark: bool) -> None:
    """And leaves a picture, to look at."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    console.dark(dark)
    for counter in ("", "page-views", "seats:gig"):
        console.look(size, counter)
        assert console.overflow <= 0
        shown = [part.is_displayed() for part in console.all("#list, #counter")]
        assert shown == ([True, bool(counter)] if size[0] > 820 else [not counter, bool(counter)])
        name = f"console-{size[0]}-{'dark' if dark else 'light'}-{counter[:4] or 'list'}.png"
        png = console.cdp("Page.captureScreenshot", captureBeyondViewport=False)["data"]
        (PICTURES / name).write_bytes(b64decode(png))
    page = console.run("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", page))) < 384) is dark
