"""Periods over HTTP and through the queue of changes: what they came to, what they take, and
what is said when not.
"""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ledger import Change, Keep, Limit, Then
from ledger.client.message import dumps, time_of
from ledger.core.checks import to_ms
from service.api.problems import not_moved
from tests.service.support import Answer, Service
from tests.world import A

KEY, NAME, NEXT, PLAIN, TILL = (
    "llm:key",
    "llm:key@2026-11",
    "llm:key@2026-12",
    "plain:a@2026-11",
    "till",
)
AT, CLOSED = "2026-11-20T00:00:00.000Z", "2026-12-16T12:00:00.000Z"
KEEP = Keep(late=timedelta(days=15), keep=timedelta(days=400))


def of_november(**started: Any) -> Service:
    limits, periods = {"llm:": Limit(ceiling=50, region=A)}, {"llm:": KEEP, "plain:": KEEP}
    return Service(A, now_ms=to_ms(time_of(AT)), limits=limits, periods=periods).start(**started)


def over(service: Service) -> Service:
    """November takes no more changes."""
    service.now_ms = to_ms(datetime(2026, 12, 20, tzinfo=UTC))
    return service


def periods(service: Service, query: str) -> Answer:
    return service.ask("GET", f"/periods?counter={query}")


# -- http


def test_the_last_periods_have_their_value_and_what_is_left() -> None:
    service = of_november()
    service.add(4, "a", NAME, at=AT)
    service.add(3, "a", PLAIN, at=AT)
    before, now = periods(service, f"{KEY}&last=2").said["periods"]
    assert (before["counter"], before["value"], before["available"]) == (
        f"{KEY}@2026-10",
        0,
        {"down": None, "up": 50},
    )
    november = {
        "counter": NAME,
        "start": "2026-11-01T00:00:00.000Z",
        "end": "2026-12-01T00:00:00.000Z",
    }
    assert now == november | {
        "value": 4,
        "count": 1,
        "floor": None,
        "ceiling": 50,
        "available": {"down": None, "up": 46},
    }
    unlimited = periods(service, "plain:a").said
    assert (unlimited["counter"], len(unlimited["periods"])) == ("plain:a", 12)
    assert (
        unlimited["periods"][-1].items()
        >= {"counter": PLAIN, "value": 3, "ceiling": None, "available": None}.items()
    )
    (week,) = periods(service, "plain:a&every=week&zone=Europe/Paris&last=1").said["periods"]
    assert (week["counter"], week["start"]) == ("plain:a@2026-W47", "2026-11-15T23:00:00.000Z")
    assert (
        periods(service, "plain:a&anchor=21&last=1").said["periods"][0]["counter"]
        == "plain:a@2026-10-21M"
    )
    five = "plain:b@2026-11-19T21+5h"
    service.add(2, "a", five, at=AT)
    before, now = periods(service, "plain:b&every=5h&last=2").said["periods"]
    assert (before["counter"], before["value"]) == ("plain:b@2026-11-19T16+5h", 0)
    assert (now["counter"], now["value"], now["end"]) == (five, 2, "2026-11-20T02:00:00.000Z")
    begins = "&every=30d&last=1&begins=2026-11-05T00:00:00Z"
    assert periods(service, KEY + begins).said["periods"][0]["counter"] == f"{KEY}@2026-11-05+30d"
    # of what is kept no longer there is no row
    service.now_ms = to_ms(datetime(2028, 1, 5, 12, tzinfo=UTC))
    assert periods(service, f"{KEY}&last=15").said["periods"][0]["counter"] == NEXT


def test_a_period_that_passed_some_on_is_shown_with_it() -> None:
    limits, keep = (
        {"llm:": Limit(ceiling=50, region=A)},
        Keep(late=KEEP.late, keep=KEEP.keep, carry=20),
    )
    service = Service(A, now_ms=to_ms(time_of(AT)), limits=limits, periods={"llm:": keep}).start()
    service.add(45, "a", NAME, at=AT)
    service.now_ms = to_ms(datetime(2026, 12, 2, tzinfo=UTC))
    for key, change in (("b", 50), ("c", 3)):
        assert service.add(change, key, NEXT, at="2026-12-02T00:00:00Z").status == 201
    rows = periods(service, f"{KEY}&last=2").said["periods"]
    shown = ("value", "ceiling", "available", "carried", "took")
    assert [[row.get(name) for name in shown] for row in rows] == [
        [45, 50, {"down": None, "up": 0}, 5, None],
        [53, 55, {"down": None, "up": 2}, None, 5],
    ]
    standing = service.ask("GET", f"/standing?counter={NAME}").said
    assert [standing.get(name) for name in shown] == [45, 50, {"down": None, "up": 0}, 5, None]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("stock", "No prefix of periods=['llm:', 'plain:'] fits stock"),
        (NAME, "Give the name without its period"),
        (f"{KEY}&zone=Europe/Pariss", "an IANA name such as Europe/Paris"),
        (f"{KEY}&every=fortnight", "'year', 'month', 'week', 'day' or 'hour'"),
        (f"{KEY}&every=05h", "so many hours or days: 5h, 30d"),
        (f"{KEY}&every=2w", "so many hours or days: 5h, 30d"),
        (f"{KEY}&every=366d", "every=366 is not an int from 1 to 365"),
        (f"{KEY}&every=5h&begins=2026-11-05T00:30:00Z", "no whole hour"),
        (f"{KEY}&every=5h&begins=2026-11-05T00:30:00", "RFC 3339 text with its offset"),
        (f"{KEY}&every=hour&begins=2026-11-05T00:00:00Z", "without every"),
        (f"{KEY}&every=5h&anchor=2&begins=2026-11-05T00:00:00Z", "anchor is of months, begins of"),
        (f"{KEY}&every=day&anchor=2", "of months alone"),
        (f"{KEY}&anchor=29", "less than or equal to 28"),
        (f"{KEY}&last=101", "less than or equal to 100"),
    ],
)
def test_bad_periods_are_refused_with_a_hint_unread(query: str, says: str) -> None:
    service = of_november()
    (error,) = periods(service, query).refused(422, "invalid-request")["errors"]
    assert says in error["error"]
    assert not service.asked


def test_windows_begin_where_the_settings_say() -> None:
    anchored = Keep(late=KEEP.late, keep=KEEP.keep, anchor=datetime(2026, 11, 1, 4, tzinfo=UTC))
    service = Service(A, now_ms=to_ms(time_of(AT)), periods={"plain:": anchored}).start()
    for zone, start in (("", "22"), ("&zone=Europe/Paris", "21")):
        (row,) = periods(service, f"plain:a&every=5h&last=1{zone}").said["periods"]
        assert row["counter"] == "plain:a@2026-11-19T22+5h"
        assert row["start"] == f"2026-11-19T{start}:00:00.000Z"
    for query, says in (
        ("every=5h&begins=2026-11-01T00:00:00Z", "one begins at 2026-11-01T04, the others every 5"),
        ("every=2d", "no midnight"),
    ):
        (error,) = periods(service, f"plain:a&{query}").refused(422, "invalid-request")["errors"]
        assert says in error["error"]
    said = service.add(1, "a", "plain:a@2026-11-19T21+5h", at=AT).refused(422, "invalid-request")
    assert "ends with one period" in said["detail"]
    assert service.add(1, "a", "plain:a@2026-11-19T22+5h", at=AT).status == 201


def asked_of(service: Service, counter: str, amount: int) -> list[Answer]:
    """A change, a hold, a reservation, and a transfer from a counter that has all it takes."""
    reservation = {"counters": [counter], "amount": amount, "expires_s": 60, "at": AT}
    transfer = {"source": TILL, "target": counter, "amount": amount, "at": AT}
    return [
        service.add(amount, "add", counter, at=AT),
        service.post(
            "holds", {"counter": counter, "amount": amount, "expires_s": 60, "at": AT}, "hold"
        ),
        service.ask("POST", "/reservations", reservation, {"Idempotency-Key": "all"}),
        service.ask("POST", "/transfers", transfer, {"Idempotency-Key": "move"}),
    ]


def test_a_periods_refusal_says_when_the_next_one_begins() -> None:
    service = of_november()
    service.now_ms += 500
    answers = asked_of(service, NAME, 51)
    for answer, name in zip(
        answers, ("limit-reached", "limit-reached", "over-budget", "limit-reached"), strict=True
    ):
        assert answer.refused(409, name)["resets_at"] == "2026-12-01T00:00:00.000Z"
        assert answer.headers["Retry-After"] == str(11 * 86_400)
    assert (service.value(NAME), service.value(TILL)) == (0, 0)


def test_a_period_that_is_over_takes_nothing_and_says_since_when() -> None:
    service = over(of_november())
    for answer in asked_of(service, NAME, 1):
        said = answer.refused(409, "period-over")
        assert said["since"] == CLOSED
        assert "No further attempt" in said["detail"]
        assert "Repeat" not in said["detail"]
    bulk = {"deltas": [{"counter": PLAIN, "change": 1, "idempotency_key": "a", "at": AT}]}
    (result,) = service.ask("POST", "/deltas", bulk).said["results"]
    assert (result["status"], result["problem"]["since"]) == (409, CLOSED)
    assert service.items == {}


def test_a_base_and_another_periods_time_are_refused() -> None:
    service = of_november()
    for counter, name, says in (
        (KEY, "invalid-request", "ends with one period, such as @2026-11"),
        (NEXT, "invalid-time", "is in the period of a name that ends with one"),
    ):
        for answer in asked_of(service, counter, 1):
            assert says in answer.refused(422, name)["detail"]
    assert service.items == {}


# -- the queue of changes


def change(counter: str, then: str | None = None, key: str = "k") -> str:
    return dumps(
        Change(counter, -5, key, time_of(AT), None, None if then is None else Then(then, 5))
    )


def test_a_change_of_a_period_that_is_over_is_answered_refused() -> None:
    service = over(of_november())
    several = f'{{"changes": [{change(PLAIN)}, {change(TILL)}]}}'
    assert service.adds(change(NAME), several) == []
    outcomes = [(message["counter"], message["outcome"]) for message in service.outcomes()]
    assert (outcomes, service.dead_letters()) == ([(NAME, "refused"), (PLAIN, "refused")], [])
    service.start(queues=("dead_letters",))
    assert service.adds(change(PLAIN), several) == []
    assert service.dead_letters() == [(change(PLAIN), "PeriodOver"), (several, "PeriodOver")]
    assert [service.value(name) for name in (NAME, PLAIN, TILL)] == [0, 0, -5]


@pytest.mark.parametrize("queues", [("dead_letters", "outcomes"), ("dead_letters",)])
def test_a_transfer_that_a_period_half_takes_moves_nothing(
    queues: tuple[str, ...],
) -> None:
    service = of_november(queues=queues)
    wrong = {change(TILL, KEY): "InvalidCounter", change(TILL, NEXT): "InvalidTime"}
    assert service.adds(*wrong) == []
    late = {change(TILL, NAME): "PeriodOver", change(PLAIN, TILL): "PeriodOver"}
    assert over(service).adds(*late) == []
    assert service.dead_letters() == [*wrong.items(), *late.items()]
    assert (service.outcomes(), service.items) == ([], {})


def test_the_next_period_is_said_while_it_is_to_come() -> None:
    end_ms = to_ms(end := datetime(2026, 12, 1, tzinfo=UTC))
    for now_ms, wait_s in ((end_ms - 1_500, "2"), (end_ms, None), (end_ms + 1, None)):
        answer = not_moved("llm:key@2026-11", end).answer(now_ms)
        assert answer["headers"].get("Retry-After") == wait_s
        assert json.loads(answer["body"]).get("resets_at") == (
            wait_s and "2026-12-01T00:00:00.000Z"
        )
