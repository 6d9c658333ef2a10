"""The recipes for frameworks: each page's code under its framework, with its retries, crashes and errors.

Frameworks are imported by the fixtures: who runs other tests does not pay for them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from ledger import Ledger, Settings, errors
from reader import Reader
from tests.docs.conftest import Account
from tests.docs.machine import Failed, execute
from tests.docs.pages import RECIPES, ROOT, blocks, instead, run

if TYPE_CHECKING:
    from fastapi.testclient import TestClient

SETTINGS = Settings(table="counters", region="eu-west-1")


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


# -- Django ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shop(account: Account) -> dict[str, Any]:
    """The page as `shop/models.py` of an installed app, on SQLite in memory."""
    import django  # type: ignore[import-untyped]
    from django.apps import AppConfig  # type: ignore[import-untyped]
    from django.conf import settings  # type: ignore[import-untyped]
    from django.db import connection  # type: ignore[import-untyped]

    class Shop(AppConfig):  # type: ignore[misc]
        path = str(ROOT)

    settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        INSTALLED_APPS=[Shop("shop", ModuleType("shop"))],
        USE_TZ=True,
    )
    django.setup()
    names = run(RECIPES / "django.md", module="shop.models")
    with connection.schema_editor() as editor:
        editor.create_model(names["Sale"])
    return names


def an_hour_ago(names: dict[str, Any]) -> None:
    """As if all sales had been made then; the ledger has seen the times that are counted."""
    for sale in names["Sale"].objects.filter(counted=False):
        names["Sale"].objects.filter(pk=sale.pk).update(at=sale.at - timedelta(hours=1))


def test_a_sale_is_counted_when_it_is_committed(shop: dict[str, Any]) -> None:
    from django.db import transaction

    with transaction.atomic():
        shop["sell"]("536365/1", "a", 6)
        assert value("sold:a") == 0
    assert value("sold:a") == 6
    assert shop["Sale"].objects.get(line="536365/1").counted


def test_a_sale_that_is_rolled_back_is_not_counted(shop: dict[str, Any]) -> None:
    from django.db import transaction

    with transaction.atomic():
        shop["sell"]("536366/1", "b", 6)
        transaction.set_rollback(True)
    assert value("sold:b") == 0
    assert not shop["Sale"].objects.filter(product="b").exists()


def test_a_request_that_is_repeated_makes_one_sale_and_one_change(shop: dict[str, Any]) -> None:
    first, again = (shop["sell"]("536367/1", "c", 6) for _ in range(2))
    assert (first.pk, first.at) == (again.pk, again.at)
    assert value("sold:c") == 6


def test_a_sale_whose_callback_failed_is_made_and_the_sweep_counts_it_once(shop: dict[str, Any]) -> None:
    with instead(shop, ledger=Failing(errors.OutcomeUnknown("No answer."))):
        shop["sell"]("536368/1", "d", 6)
    assert value("sold:d") == 0
    assert shop["sweep"]() == []
    assert value("sold:d") == 0  # it is not a minute old
    an_hour_ago(shop)
    for _ in range(2):
        assert shop["sweep"]() == []
        assert value("sold:d") == 6
    with instead(shop, ledger=Failing(AssertionError("what is counted is not added again"))):
        assert shop["sweep"]() == []


def test_a_sale_that_was_counted_by_a_process_that_died_before_it_said_so_counts_once(shop: dict[str, Any]) -> None:
    Sale = shop["Sale"]
    sale = Sale.objects.create(line="536369/1", product="e", pieces=6, at=datetime.now(UTC) - timedelta(hours=2))
    shop["count"](sale)
    Sale.objects.filter(pk=sale.pk).update(counted=False)
    assert shop["sweep"]() == []
    assert value("sold:e") == 6
    assert Sale.objects.get(pk=sale.pk).counted


def test_an_edited_sale_is_named_by_the_sweep_and_holds_up_no_other(shop: dict[str, Any]) -> None:
    Sale, at = shop["Sale"], datetime.now(UTC) - timedelta(hours=2)
    edited = Sale.objects.create(line="536370/1", product="f", pieces=6, at=at)
    shop["count"](edited)
    Sale.objects.filter(pk=edited.pk).update(counted=False, pieces=7)
    Sale.objects.create(line="536371/1", product="f", pieces=10, at=at)
    assert shop["sweep"]() == ["536370/1"]
    assert value("sold:f") == 16
    Sale.objects.filter(pk=edited.pk).delete()


def test_the_time_of_a_sale_is_the_same_in_memory_and_in_the_database(shop: dict[str, Any]) -> None:
    sale = shop["sell"]("536372/1", "g", 6)
    assert sale.at == shop["Sale"].objects.get(pk=sale.pk).at
    assert sale.at.microsecond == 0


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


# -- Step Functions ----------------------------------------------------------------------------------------------------

AT = "2010-12-01T08:26:00Z"
COUNT, WORKFLOW = (json.loads(block) for block in blocks(RECIPES / "step-functions.md", "json"))


class Cloud:
    """What the two machines ask for. `lost`: puts that are applied without an answer. `ended`: how COUNT ended."""

    def __init__(self, account: Account, lost: int = 0) -> None:
        self._dynamodb = account.dynamodb
        self._lost = lost
        self.ended: list[str] = []

    def task(self, resource: str, arguments: Any) -> Any:
        match resource.removeprefix("arn:aws:states:::"):
            case "states:startExecution.sync:2":
                try:
                    self.ended.append(execute(COUNT, arguments["Input"], self.task))
                except Failed as failed:
                    self.ended.append(failed.name)
                    raise Failed("States.TaskFailed") from failed
                return {}
            case "dynamodb:putItem":
                try:
                    self._dynamodb.put_item(**arguments)
                except ClientError as error:
                    raise Failed(f"DynamoDB.{error.response['Error']['Code']}") from error
                if self._lost:
                    self._lost -= 1
                    raise Failed("DynamoDB.InternalServerError")
                return {}
            case "dynamodb:getItem":
                return self._dynamodb.get_item(**arguments)
        raise AssertionError(resource)


def sale(code: str, quantity: int = 6) -> dict[str, Any]:
    return {"stock_code": code, "quantity": quantity, "order_line": "536365/1", "invoiced_at": AT}


def test_a_workflow_that_is_repeated_counts_once_and_the_library_finds_its_change(account: Account) -> None:
    cloud = Cloud(account)
    assert [execute(WORKFLOW, sale("s1"), cloud.task) for _ in range(2)] == ["Counted"] * 2
    assert cloud.ended == ["Recorded", "Replayed"]
    at = datetime.fromisoformat(AT)
    assert Ledger(SETTINGS).add("stock:s1", -6, idempotency_key="536365/1", at=at).outcome == "replayed"
    assert value("stock:s1") == -6


@pytest.mark.parametrize("lost", [1, 2])
def test_a_put_that_got_no_answer_is_put_again_and_counts_once(account: Account, lost: int) -> None:
    cloud = Cloud(account, lost)
    assert execute(WORKFLOW, sale("s2"), cloud.task) == "Counted"
    assert cloud.ended == ["Replayed"]
    assert value("stock:s2") == -6


def test_another_change_under_the_same_key_ends_where_somebody_is_told(account: Account) -> None:
    cloud = Cloud(account)
    execute(WORKFLOW, sale("s3"), cloud.task)
    with pytest.raises(Failed, match="NotCounted"):
        execute(WORKFLOW, sale("s3", 7), cloud.task)
    assert set(cloud.ended[1:]) == {"TokenConflict"}
    assert value("stock:s3") == -6


def test_the_workflow_leads_from_state_to_state() -> None:
    states = WORKFLOW["States"]
    for state in states.values():
        following = [state.get("Next"), *(catch["Next"] for catch in state.get("Catch", []))]
        assert {name for name in following if name} <= set(states)
