"""The recipes for FastAPI and Lambda: each page's code under its framework, with its retries and errors.

The fixture imports FastAPI: who runs other tests does not pay for it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from ledger import Settings, errors
from reader import Reader
from tests.docs.conftest import Account
from tests.docs.pages import RECIPES, run

if TYPE_CHECKING:
    from fastapi.testclient import TestClient

SETTINGS = Settings(table="counters", region="eu-west-1")
AT = "2010-12-01T08:26:00Z"


def value(counter: str) -> int:
    return Reader(SETTINGS).read(counter).value


class Failing:
    """A ledger of which every call fails so."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def add(self, *_: object, **__: object) -> None:
        raise self._error


# -- FastAPI -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def api(account: Account) -> Iterator[TestClient]:
    from fastapi.testclient import TestClient

    app = run(RECIPES / "fastapi.md")["app"]
    with TestClient(app) as client:
        yield client


def post(api: TestClient, key: str | None, **body: object) -> tuple[int, Any]:
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = api.post("/counters/stock:1/changes", json=body, headers=headers)
    return answer.status_code, answer.json()


def test_a_request_that_is_repeated_is_recorded_and_then_replayed(api: TestClient) -> None:
    at = datetime.now(UTC).isoformat()
    first, again = (post(api, "line-1", change=-6, at=at) for _ in range(2))
    assert (first[0], first[1]["outcome"]) == (201, "recorded")
    assert (again[0], again[1]) == (200, first[1] | {"outcome": "replayed"})
    assert value("stock:1") == -6
    assert api.get("/counters/stock:1").json() == {"value": -6}


def test_a_key_that_stands_for_another_change_is_409(api: TestClient) -> None:
    at = datetime.now(UTC).isoformat()
    post(api, "line-2", change=1, at=at)
    status, body = post(api, "line-2", change=2, at=at)
    assert status == 409
    assert "Nothing was written" in body["detail"]


@pytest.mark.parametrize(
    ("key", "body"),
    [
        (None, {"change": 1, "at": "2026-01-01T00:00:00Z"}),
        ("k", {"change": 1, "at": "2026-01-01T00:00:00"}),
        ("k", {"change": 1}),
        ("k", {"change": True, "at": "2026-01-01T00:00:00Z"}),
        ("k", {"change": 1.5, "at": "2026-01-01T00:00:00Z"}),
        ("k", {"change": 10**18 + 1, "at": "2026-01-01T00:00:00Z"}),
        ("k" * 1025, {"change": 1, "at": "2026-01-01T00:00:00Z"}),
        ("k", {"change": 1, "at": "9999-01-01T00:00:00Z"}),
    ],
)
def test_what_names_no_change_is_422_and_writes_nothing(api: TestClient, key: str | None, body: dict[str, Any]) -> None:
    before = value("stock:1")
    assert post(api, key, **body)[0] == 422
    assert value("stock:1") == before


@contextmanager
def ledger_of(api: TestClient, other: object) -> Iterator[None]:
    state: Any = api.app.state  # type: ignore[attr-defined]
    state.ledger, own = other, state.ledger
    try:
        yield
    finally:
        state.ledger = own


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.OutcomeUnknown("No answer."), 504),
        (errors.Throttled("Slower."), 429),
        (errors.Unavailable("No answer."), 503),
        (errors.NotAllowed("No credentials."), 500),
    ],
)
def test_what_the_table_answers_is_a_status(api: TestClient, error: errors.LedgerError, status: int) -> None:
    with ledger_of(api, Failing(error)):
        assert post(api, "line-3", change=1, at="2026-01-01T00:00:00Z")[0] == status


def test_an_add_does_not_block_the_event_loop(api: TestClient) -> None:
    class Looks:
        def add(self, *_: object, **__: object) -> None:
            with pytest.raises(RuntimeError, match="no running event loop"):
                asyncio.get_running_loop()
            raise errors.Throttled("It was looked at.")

    with ledger_of(api, Looks()):
        assert post(api, "line-4", change=1, at="2026-01-01T00:00:00Z")[0] == 429


# -- Lambda ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def function(account: Account) -> dict[str, Any]:
    return run(RECIPES / "lambda.md")


def message(n: int, body: object) -> dict[str, Any]:
    return {
        "messageId": f"m{n}",
        "receiptHandle": "x",
        "body": body if isinstance(body, str) else json.dumps(body),
        "attributes": {},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:sales",
        "awsRegion": "eu-west-1",
    }


def test_a_batch_counts_each_line_once_and_reports_what_is_broken(function: dict[str, Any]) -> None:
    def line(number: int, quantity: int) -> dict[str, Any]:
        order_line = f"536365/{number}"
        return {"stock_code": "l", "quantity": quantity, "order_line": order_line, "invoiced_at": AT}

    bodies = [line(1, 6), line(2, 8), line(1, 6), "{", line(1, 7), line(3, 1) | {"invoiced_at": "2010-12-01T08:26:00"}]
    event = {"Records": [message(n, body) for n, body in enumerate(bodies)]}
    for _ in range(2):  # a redrive
        response = function["handler"](event, None)
        assert response == {"batchItemFailures": [{"itemIdentifier": f"m{n}"} for n in (3, 4, 5)]}
        assert value("stock:l") == -14


def test_a_batch_in_which_all_is_broken_is_reported_by_message(function: dict[str, Any]) -> None:
    response = function["handler"]({"Records": [message(1, "no")]}, None)
    assert response == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
