"""What one request may take of the table: a series, a history and a list have a bound, however
much is there.
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from compactor import Compactor
from ledger import Change, Ledger, Limit
from ledger.client.message import time_text
from ledger.core.checks import to_datetime, to_ms
from ledger.core.values import Lane
from ledger.lane import directory
from service.api import models
from tests.service.support import Service
from tests.world import A

HOT, GIG = "hot", "seats:gig"
DAY_MS, START_MS = 86_400_000, to_ms(datetime(2026, 11, 20, tzinfo=UTC))
DAYS, CHANGES, BOUND = 12, 700, 40  # the changes of a day are 17 KB of segments, 5 read units
SINCE = f"since={time_text(to_datetime(START_MS))}"


@pytest.fixture(scope="module")
def filled() -> Service:
    """An unlimited counter whose days were folded, a limited one, and both in the directory."""
    service = Service(
        A, now_ms=START_MS, regions=(A,), limits={"seats:": Limit(ceiling=10**6, region=A)}
    )
    ledger = Ledger(service.settings, table=service, clock=service.clock)
    for day in range(DAYS):
        service.now_ms = START_MS + day * DAY_MS + CHANGES * 1_000
        for counter in (HOT, GIG):
            at = (to_datetime(START_MS + day * DAY_MS + n * 1_000) for n in range(CHANGES))
            ledger.add_many([Change(counter, 1, f"{day}/{n}", when) for n, when in enumerate(at)])
        service.now_ms += DAY_MS // 2
        Compactor(service.settings, tables={A: service}, clock=service.clock).compact(HOT)
    service.store(directory.item_of(Lane(A, 0, name)) for name in (HOT, GIG))
    return service.start()


@pytest.fixture
def service(filled: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setattr(models, "UNITS_MAX", BOUND)
    return filled.start()


def refusal(service: Service, path: str) -> str:
    """What the request should rather ask."""
    service.asked.clear()
    (error,) = service.ask("GET", path).refused(422, "invalid-request")["errors"]
    assert error["error"].startswith(
        f"This read takes more than {BOUND} read units, so it was ended. "
    )
    assert "written" not in error["error"]
    assert 2 <= len(service.asked) < 30
    return str(error["error"])


def values(service: Service, path: str) -> list[int]:
    return [step["value"] for step in service.ask("GET", path).said["steps"]]


def test_a_series_that_reads_too_much_is_refused_with_a_remedy(
    service: Service,
) -> None:
    series = f"/series?counter={HOT}&{SINCE}"
    instead = refusal(service, f"{series}&every=hour")
    assert "Ask for a shorter time, or for days, weeks or months of UTC" in instead
    until = time_text(to_datetime(START_MS + DAY_MS))
    assert values(service, f"{series}&every=hour&until={until}") == [CHANGES] * 24
    assert values(service, f"{series}&every=day") == [CHANGES * (day + 1) for day in range(DAYS)]
    assert values(service, f"{series}&every=week")[-1] == CHANGES * DAYS


def test_a_limited_series_and_a_value_at_an_instant_are_bounded(
    service: Service,
) -> None:
    for every in ("hour", "month"):
        assert "Of a counter with a limit" in refusal(
            service, f"/series?counter={GIG}&{SINCE}&every={every}"
        )
    at = time_text(to_datetime(START_MS + 2 * DAY_MS + 5_000))
    assert "Of a counter with a limit" in refusal(service, f"/counters?counter={GIG}&at={at}")
    assert service.ask("GET", f"/counters?counter={HOT}&at={at}").said["value"] == 2 * CHANGES + 5


def test_a_history_that_reads_too_much_is_refused(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for counter in (HOT, GIG):
        every: list[Any] = []
        path = f"/history?counter={counter}&{SINCE}&limit=100"
        while path:
            page = service.ask("GET", path).said
            every += page["entries"]
            path = (
                page["next"]
                and f"/history?counter={counter}&{SINCE}&limit=100&cursor={page['next']}"
            )
        assert [entry["change"] for entry in every] == [1] * CHANGES * DAYS
        monkeypatch.setattr(models, "UNITS_MAX", BOUND // 4)
        service.start().asked.clear()
        (error,) = service.ask("GET", f"/history?counter={counter}&limit=1000").refused(
            422, "invalid-request"
        )["errors"]
        assert "Ask for fewer entries, for a shorter time" in error["error"]
        monkeypatch.setattr(models, "UNITS_MAX", BOUND)
        service.start()


def test_a_list_ends_its_page_and_goes_on(service: Service) -> None:
    names: list[str] = []
    path, pages = "/counters?prefix=", 0
    while path:
        service.asked.clear()
        page = service.ask("GET", path).said
        assert len(service.asked) < 120
        names += page["counters"]
        pages += 1
        path = page["next"] and f"/counters?prefix=&after={page['next']}"
    assert (sorted(names), pages > 2) == ([HOT, GIG], True)


def test_the_bound_is_that_of_the_pages() -> None:
    assert models.UNITS_MAX == 4_096
