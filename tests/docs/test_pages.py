"""Every page's Python runs as it stands and prints what its comments say; what a recipe claims
beside that is tried.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Never

import pytest

from ledger import Cost, Ledger, Observed
from ledger.core import clocks, errors
from ledger.core.checks import to_ms
from ledger.core.requests import Instant
from ledger.tables.memory import MemoryTable
from reader import Reader
from service.add_from_queue.handler import AddFromQueue
from service.observe import Watch
from tests.docs.conftest import Account, Names, value
from tests.docs.pages import DOCS, RECIPES, ROOT, Dies, instead, prose, source
from tests.ledger.test_queue import Queue
from tests.service.support import sqs

Page = Callable[[str | Path], Names]
WITH_PYTHON = [page for page in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))) if source(page)]
# they need a queue on AWS, the CDK
READ_ONLY = {DOCS / "producers.md", DOCS / "recipes/terraform.md"}
ELSEWHERE = {DOCS / "first-hour.md"}  # on the engine: tests/ledgerctl/test_page.py
AT = "2010-12-01T08:26:00Z"


now = partial(datetime.now, UTC)


class Clock:
    """Milliseconds since 1970, which stand still until a test moves them: how long a call takes
    decides nothing.
    """

    def __init__(self, at: datetime) -> None:
        self.now_ms = to_ms(at)

    def __call__(self) -> int:
        return self.now_ms


def fails(error: Exception) -> Never:
    raise error


@pytest.mark.parametrize("path", WITH_PYTHON, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_python_of_a_page_prints_what_its_comments_say(page: Page, path: Path) -> None:
    if path in READ_ONLY:
        compile(source(path), path.name, "exec")
    elif path not in ELSEWHERE:
        page(path)


def test_a_recipe_has_at_most_300_words_round_its_code() -> None:
    words = {path.stem: len(prose(path).split()) for path in RECIPES.glob("*.md")}
    assert {name: number for name, number in words.items() if number > 300} == {}


def test_each_call_is_a_line_of_the_log_and_a_metric(
    page: Page, caplog: pytest.LogCaptureFixture
) -> None:
    from opentelemetry.metrics import set_meter_provider
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    metrics = InMemoryMetricReader()
    set_meter_provider(MeterProvider([metrics]))
    observe = page("observing")["observe"]
    observe(Observed("reader.read", 30.0, Cost(1, 1, 2.5, untold=1), "read"))
    observe(Observed("ledger.add", 7.0, Cost(1, 1, 0.0, 1.0), "LimitReached"))
    assert caplog.records[-1].levelname == "WARNING"
    data: Any = metrics.get_metrics_data()
    found = {
        metric.name: metric.data.data_points
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
    }
    assert found["exact_counter.call.duration"][-1].attributes["error.type"] == "LimitReached"
    assert [point.value for point in found["exact_counter.read_units"]][-2:] == [2.5, 0]


def test_the_picture_of_the_chart_is_what_its_recipe_draws(page: Page) -> None:
    """When it changes: `Path("docs/chart.svg").write_text(picture)` at the end of what the
    recipe runs.
    """
    chart = page("chart")
    assert (DOCS / "chart.svg").read_text() == chart["picture"]
    assert chart["picture"].count("<rect") == 28


# with the refusal in mind; when it was a while ago
@pytest.mark.parametrize(("pause_s", "units"), [(0, 1), (2, 3)])
def test_nothing_is_oversold_and_a_refused_line_stays_refused(
    page: Page, account: Account, pause_s: int, units: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a refusal is remembered for a second of both clocks, which a busy machine may take here
    monkeypatch.setattr(clocks, "instants", lambda clock: lambda: Instant(clock(), clock()))
    stock, at, name = page("stock"), now(), f"p{pause_s}"
    clock = Clock(at)
    dublin, virginia = (
        Ledger(stock[region].settings, clock=clock) for region in ("dublin", "virginia")
    )
    book = stock["book"]
    assert book(dublin, f"{name}/delivery", name, 4, at)
    assert [book(virginia, f"{name}/{i}", name, -1, at) for i in range(6)] == [True] * 4 + [
        False
    ] * 2
    assert book(dublin, f"{name}/delivery-2", name, 5, at)
    assert not book(virginia, f"{name}/5", name, -1, at)
    reserved = stock["reserve"](dublin, f"{name}/basket", name, 3, at)
    for ledger in (dublin, dublin, virginia):
        with pytest.raises(errors.LimitReached):
            stock["reserve"](ledger, f"{name}/other", name, 3, at)
        clock.now_ms += pause_s * 1_000
    with account.bill() as paid:
        stock["pay"](dublin, name, reserved)
    stock["pay"](dublin, name, reserved)
    with account.bill() as sale:
        assert book(dublin, f"{name}/6", name, -1, at)
    said = re.search(r"A sale is (\d) to (\d) write units", (RECIPES / "stock.md").read_text())
    assert said is not None
    assert (paid[0].write_units, sale[0].write_units) == (1, units)
    assert units in map(int, said.groups())
    assert Reader(virginia.settings).read(f"stock:{name}").value == 1


@contextmanager
def dying_before_the_credit(account: Account, target: str) -> Iterator[None]:
    """A process of the block dies before it credits `target`."""

    def dies(params: Names, **_: object) -> None:
        if params["Key"]["pk"]["S"].endswith(target):
            raise Dies

    updates = ("provide-client-params.dynamodb.UpdateItem", dies)
    account.dynamodb.meta.events.register(*updates)
    with pytest.raises(Dies):
        yield
    account.dynamodb.meta.events.unregister(*updates)


def test_money_between_two_changes_is_missing_never_doubled(page: Page, account: Account) -> None:
    wallet, at = page("wallet"), now()
    everyone = ["outside", "wallet:ann", "wallet:bob"]
    with dying_before_the_credit(account, "wallet:bob"):
        wallet["transfer"]("pay-19", "wallet:ann", "wallet:bob", 100, at)
    assert wallet["on_its_way"](*everyone) == 100
    for _ in range(2):
        with account.bill() as bill:
            assert wallet["transfer"]("pay-19", "wallet:ann", "wallet:bob", 100, at)
    assert (wallet["on_its_way"](*everyone), bill[0].write_units) == (0, 2)
    with account.bill() as out:
        wallet["paid_out"](
            "out-9", "wallet:bob", 50, at, wallet["withdraw"]("out-9", "wallet:bob", 50, at)
        )
    assert (wallet["on_its_way"](*everyone), out[0].write_units) == (0, 3)


def test_a_dead_transfer_is_finished_by_queue_or_caller(page: Page, account: Account) -> None:
    wallet, at = page("wallet"), now()
    ledger, payment = wallet["ledger"], ("pay-21", "wallet:ann", "wallet:bob", 200, at)
    before = wallet["reader"].read("wallet:bob").value
    with dying_before_the_credit(account, "wallet:bob"):
        wallet["transfer"](*payment)
    queue = Queue()
    wallet["by_queue"](queue.open(), *payment)
    service = AddFromQueue(ledger, Watch.here("test", io.StringIO()), pack=False)
    assert service(sqs(*queue.batches[0])) == {"batchItemFailures": []}
    assert wallet["transfer"](*payment)
    assert wallet["reader"].read("wallet:bob").value == before + 200
    assert wallet["on_its_way"]("outside", "wallet:ann", "wallet:bob") == 0


def test_places_of_a_buyer_who_does_not_pay_are_sold_again(page: Page, account: Account) -> None:
    tickets = page("tickets")
    tickets["ledger"].set_limit("tickets:proms-13", ceiling=2)
    with instead(tickets, charge=lambda *_: fails(tickets["Declined"]())):
        assert not tickets["buy"]("proms-13", "order-1", "ann", 2, now())
    with account.bill() as bill:
        assert tickets["buy"]("proms-13", "order-2", "bob", 2, now())
    assert bill[0].write_units == 2
    assert not tickets["buy"]("proms-13", "order-3", "bob", 2, now())


def test_who_may_have_paid_keeps_his_places(page: Page) -> None:
    tickets, at = page("tickets"), now()
    tickets["ledger"].set_limit("tickets:proms-14", ceiling=2)
    with instead(tickets, charge=lambda *_: fails(Dies())), pytest.raises(Dies):
        tickets["buy"]("proms-14", "order-1", "ann", 2, at)
    assert not tickets["buy"]("proms-14", "order-2", "bob", 1, now())
    assert [tickets["buy"]("proms-14", "order-1", "ann", 2, at) for _ in range(2)] == [True, True]
    assert tickets["reader"].read("tickets:proms-14").value == 2


def test_the_endpoint_says_by_its_status_what_to_do(page: Page) -> None:
    from fastapi.testclient import TestClient

    names, at = page("fastapi"), now().isoformat()
    app = names["app"]
    with instead(names, given={"table": MemoryTable()}), TestClient(app) as api:

        def post(key: str | None, **body: object) -> tuple[int, Any]:
            headers = {} if key is None else {"Idempotency-Key": key}
            answer = api.post("/counters/stock:e/changes", json=body, headers=headers)
            return answer.status_code, answer.json()

        assert [post("line-1", change=-6, at=at)[0] for _ in range(2)] == [201, 200]
        status, body = post("line-1", change=2, at=at)
        assert (status, "Nothing was written" in body["detail"]) == (409, True)
        for key, wrong in (
            (None, {"change": 1, "at": AT}),
            ("k", {"change": 1}),
            ("k", {"change": 1.5, "at": AT}),
        ):
            assert post(key, **wrong)[0] == 422
        assert api.get("/counters/stock:e").json() == {"value": -6}
        for error, status in (
            *((errors.OutcomeUnknown, 504), (errors.Throttled, 429), (errors.NotAllowed, 500)),
            *((errors.LimitReached, 409), (errors.PeriodOver, 409), (errors.OutOfReach, 503)),
        ):
            app.state.ledger = SimpleNamespace(
                add=lambda *_, error=error, **__: fails(error("No."))
            )
            assert post("line-3", change=1, at=AT)[0] == status


def test_a_batch_counts_each_line_once_and_reports_the_broken(page: Page) -> None:
    handler = page("lambda")["handler"]

    def line(number: int, quantity: int) -> str:
        order_line = f"536365/{number}"
        return json.dumps(
            {"stock_code": "l", "quantity": quantity, "order_line": order_line, "invoiced_at": AT}
        )

    event = sqs(line(1, 6), line(2, 8), line(1, 6), "{", line(1, 7))
    for _ in range(2):  # a redrive
        assert handler(event, None) == {
            "batchItemFailures": [{"itemIdentifier": f"m{n}"} for n in (4, 5)]
        }
        assert value("stock:l") == -14
    assert handler(sqs("no"), None) == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
