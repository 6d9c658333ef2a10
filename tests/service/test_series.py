"""The HTTP API's series, and a counter's value at an instant."""

from typing import Any

import pytest

from tests.service.support import Service
from tests.service.test_holds import web
from tests.world import COUNTER

SERIES = f"/series?counter={COUNTER}&since="


def with_changes() -> Service:
    """Four changes around a midnight of Paris, three of them on one day of UTC."""
    service = web()
    for n, at in enumerate(
        ("2024-12-30T22:30", "2024-12-30T23:30", "2024-12-31T22:59", "2024-12-31T23:00")
    ):
        service.add(4**n, f"key {n}", at=f"{at}:00Z")
    return service


def steps(service: Service, query: str) -> list[tuple[Any, ...]]:
    said = service.ask("GET", f"{SERIES}{query}").said
    assert said["counter"] == COUNTER
    return [
        (step["start"][:16], step["change"], step["count"], step["value"]) for step in said["steps"]
    ]


def test_a_series_follows_its_zone_and_ends_now_or_at_until() -> None:
    service, until = with_changes(), "2025-01-01T00:00:00Z"
    days = [("2024-12-30T00:00", 5, 2, 5), ("2024-12-31T00:00", 80, 2, 85)]
    assert steps(service, f"2024-12-30T10:00:00Z&until={until}") == days
    in_paris = [
        ("2024-12-29T23:00", 1, 1, 1),
        ("2024-12-30T23:00", 20, 2, 21),
        ("2024-12-31T23:00", 64, 1, 85),
    ]
    assert steps(service, f"2024-12-30T10:00:00Z&until={until}&zone=Europe/Paris") == in_paris
    assert steps(service, f"2024-12-30T23:00:00Z&until={until}&every=hour")[0] == (
        "2024-12-30T23:00",
        4,
        1,
        5,
    )
    last = service.ask("GET", f"{SERIES}2024-12-30T23:00:00Z&every=month").said["steps"][-1]
    assert (
        last["start"]
        <= service.ask("GET", f"/counters?counter={COUNTER}").said["as_of"]
        < last["end"]
    )


def test_a_series_may_end_in_the_future() -> None:
    service = with_changes()
    found = steps(service, "2024-12-31T00:00:00Z&until=2025-01-03T00:00:00Z")
    nothing = [(f"2025-01-0{day}T00:00", 0, 0, 85) for day in (1, 2)]
    assert found == [("2024-12-31T00:00", 80, 2, 85), *nothing]


def test_the_value_at_an_instant_is_what_was_asked_before_it() -> None:
    service, read = with_changes(), f"/counters?counter={COUNTER}"
    at = "2024-12-31T22:59:00.000Z"
    for how in ("", "&consistent=false"):
        assert service.ask("GET", f"{read}&at={at}{how}").said == {
            "counter": COUNTER,
            "at": at,
            "value": 5,
        }
    balance = {"counter", "value", "count", "as_of", "pending", "by_region", "cached", "closed"}
    assert service.ask("GET", read).said.keys() == balance


@pytest.mark.parametrize(
    ("target", "name", "says"),
    [
        (
            f"{SERIES}2024-11-01T00:00:00Z&every=hour&until=2024-12-31T00:00:00Z",
            "invalid-request",
            "1,000 steps",
        ),
        (f"{SERIES}2024-12-01T00:00:00Z&zone=Europe/Pariss", "invalid-request", "no time zone"),
        (
            f"{SERIES}2024-12-01T00:00:00Z&until=2024-12-01T00:00:00Z",
            "invalid-request",
            "since is not before until",
        ),
        (
            f"{SERIES}2024-12-01T00:00:00Z&every=year",
            "invalid-request",
            "'hour', 'day', 'week' or 'month'",
        ),
        (f"{SERIES}2024-12-01", "invalid-request", "RFC 3339"),
        (f"/series?counter={COUNTER}", "invalid-request", "required"),
        (f"{SERIES}2999-01-01T00:00:00Z", "invalid-time", "to now"),
        (
            f"{SERIES}2024-12-01T00:00:00Z&every=month&until=9999-12-31T00:00:00Z",
            "invalid-request",
            "1,000 steps",
        ),
        (f"{SERIES}1969-01-01T00:00:00Z", "invalid-time", "from 1970"),
        (f"/counters?counter={COUNTER}&at=2999-01-01T00:00:00Z", "invalid-time", "to now"),
        (
            f"/counters?counter={COUNTER}&at=2024-12-01T00:00:00Z&max_age=1",
            "invalid-request",
            "Does not go with at",
        ),
        (
            "/counters?prefix=stock&at=2024-12-01T00:00:00Z",
            "invalid-request",
            "Does not go with prefix",
        ),
    ],
)
def test_a_bad_series_is_refused_with_a_hint_unread(target: str, name: str, says: str) -> None:
    service = web()
    answer = service.ask("GET", target)
    answer.refused(422, name)
    assert says in answer.body
    assert not service.asked
