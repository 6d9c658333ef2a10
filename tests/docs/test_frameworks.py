"""The recipes for FastAPI and Lambda: each page's code under its framework, with its retries and errors.

The fixture imports FastAPI: who runs other tests does not pay for it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from ledger import errors
from tests.docs.conftest import Account, value
from tests.docs.pages import RECIPES, run
from tests.service.support import sqs

if TYPE_CHECKING:
    from fastapi.testclient import TestClient

AT, NEW_YEAR = "2010-12-01T08:26:00Z", "2026-01-01T00:00:00Z"


class Failing:
    """A ledger of which every call fails so, after a look at whose thread it is called in."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def add(self, *_: object, **__: object) -> None:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
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


def test_a_request_that_is_repeated_is_replayed_and_another_change_under_its_key_is_409(api: TestClient) -> None:
    at = datetime.now(UTC).isoformat()
    first, again = (post(api, "line-1", change=-6, at=at) for _ in range(2))
    assert (first[0], first[1]["outcome"]) == (201, "recorded")
    assert (again[0], again[1]) == (200, first[1] | {"outcome": "replayed"})
    status, body = post(api, "line-1", change=2, at=at)
    assert (status, "Nothing was written" in body["detail"]) == (409, True)
    assert value("stock:1") == -6
    assert api.get("/counters/stock:1").json() == {"value": -6}


@pytest.mark.parametrize(
    ("key", "body"),
    [
        (None, {"change": 1, "at": NEW_YEAR}),
        ("k", {"change": 1, "at": "2026-01-01T00:00:00"}),
        ("k", {"change": 1}),
        ("k", {"change": True, "at": NEW_YEAR}),
        ("k", {"change": 1.5, "at": NEW_YEAR}),
        ("k", {"change": 10**18 + 1, "at": NEW_YEAR}),
        ("k" * 1025, {"change": 1, "at": NEW_YEAR}),
        ("k", {"change": 1, "at": "9999-01-01T00:00:00Z"}),
    ],
)
def test_what_names_no_change_is_422_and_writes_nothing(api: TestClient, key: str | None, body: dict[str, Any]) -> None:
    before = value("stock:1")
    assert post(api, key, **body)[0] == 422
    assert value("stock:1") == before


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
    state: Any = api.app.state  # type: ignore[attr-defined]
    state.ledger, own = Failing(error), state.ledger
    try:
        assert post(api, "line-3", change=1, at=NEW_YEAR)[0] == status
    finally:
        state.ledger = own


# -- Lambda ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def function(account: Account) -> dict[str, Any]:
    return run(RECIPES / "lambda.md")


def test_a_batch_counts_each_line_once_and_reports_what_is_broken(function: dict[str, Any]) -> None:
    def line(number: int, quantity: int) -> dict[str, Any]:
        order_line = f"536365/{number}"
        return {"stock_code": "l", "quantity": quantity, "order_line": order_line, "invoiced_at": AT}

    bodies = [line(1, 6), line(2, 8), line(1, 6), "{", line(1, 7), line(3, 1) | {"invoiced_at": "2010-12-01T08:26:00"}]
    event = sqs(*(body if isinstance(body, str) else json.dumps(body) for body in bodies))
    for _ in range(2):  # a redrive
        response = function["handler"](event, None)
        assert response == {"batchItemFailures": [{"itemIdentifier": f"m{n}"} for n in (4, 5, 6)]}
        assert value("stock:l") == -14


def test_a_batch_in_which_all_is_broken_is_reported_by_message(function: dict[str, Any]) -> None:
    response = function["handler"](sqs("no"), None)
    assert response == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
