"""The recipes that count: each page is run as it stands, and what it says about retries, crashes and costs is tried."""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.metrics import set_meter_provider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode, set_tracer_provider

from ledger import Cost, Ledger, Observed
from ledger.errors import LedgerError, LimitReached
from reader import Reader
from simulator import Faults, Simulation
from tests.docs.conftest import Account, value
from tests.docs.pages import RECIPES, ROOT, Dies, Mortal, instead, run

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

Page = dict[str, Any]


def now() -> datetime:
    return datetime.now(UTC)


# -- LLM budgets -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def llm(account: Account) -> Page:
    account.without_shape()
    return run(RECIPES / "llm-budgets.md")


def test_a_call_in_two_budgets_is_four_write_units(llm: Page, account: Account) -> None:
    names = llm["budgets_of"]("k2", "green")
    for name in names:
        llm["ledger"].add(name, 0)  # makes the gate
    with account.bill() as bill, llm["budgets"].reserve(names, 100) as call:
        call.settle(60)
    assert bill.write_units == 4
    assert [llm["reader"].read(name).value for name in names] == [60, 60]


def test_each_way_in_which_budgets_leak_names_a_test_that_is_there() -> None:
    rows = re.findall(r"^\| .* \| .* \| `(\w+)` \|$", (RECIPES / "llm-budgets.md").read_text(), re.MULTILINE)
    tests = "".join(path.read_text() for path in (ROOT / "tests" / "budgets").glob("test_*.py"))
    assert len(rows) >= 12
    assert [row for row in rows if f"def test_{row}(" not in tests] == []


# -- logging and OpenTelemetry -----------------------------------------------------------------------------------------


def test_each_call_is_a_line_of_the_log_metrics_and_a_span(account: Account, caplog: pytest.LogCaptureFixture) -> None:
    account.without_shape()
    metrics, spans, tracers = InMemoryMetricReader(), InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    set_meter_provider(MeterProvider([metrics]))
    set_tracer_provider(tracers)
    caplog.set_level(logging.DEBUG, "ledger.programs")
    page = run(RECIPES / "observing.md")
    page["observe"](Observed("reader.read", 30.0, Cost(1, 1, 2.5, untold=1), "read"))
    page["observe"](Observed("ledger.add", 7.0, Cost(1, 1, 0.0, 1.0), "LimitReached"))
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert lines[0][1].startswith("ledger.add recorded: ")
    assert lines[1:] == [
        ("DEBUG", "reader.read read: 30.0 ms, requests 1, read units at least 2.5, write units at least 0"),
        ("WARNING", "ledger.add LimitReached: 7.0 ms, requests 1, read units 0, write units 1"),
    ]
    data: Any = metrics.get_metrics_data()
    found = {metric.name: metric.data.data_points for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    _, read, refused = found["exact_counter.call.duration"]
    assert (read.sum, read.explicit_bounds[:2]) == (pytest.approx(0.03), (0.001, 0.005))
    assert refused.attributes["error.type"] == refused.attributes["exact_counter.outcome"] == "LimitReached"
    assert [point.value for point in found["exact_counter.read_units"]][1:] == [2.5, 0]
    assert [point.value for point in found["exact_counter.write_units"]][1:] == [0, 1.0]
    _, span, failed = spans.get_finished_spans()
    assert (span.name, span.end_time - span.start_time) == ("reader.read", 30_000_000)  # type: ignore[operator]
    assert (span.status.status_code, failed.status.status_code) == (StatusCode.UNSET, StatusCode.ERROR)


# -- stock -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stock(account: Account) -> Page:
    account.without_shape()
    return run(RECIPES / "stock.md")


@pytest.fixture
def product(stock: Page, request: pytest.FixtureRequest) -> str:
    """A product of which four pieces were delivered."""
    name: str = request.node.name
    assert stock["book"](f"{name}/delivery", name, 4, now())
    return name


def test_nothing_is_sold_that_is_not_there(stock: Page, product: str) -> None:
    assert [stock["book"](f"{product}/{i}", product, -1, now()) for i in range(6)] == [True] * 4 + [False] * 2
    assert stock["reader"].read(f"stock:{product}").value == 0


def test_a_line_that_was_refused_stays_so_and_a_new_one_is_sold_after_a_delivery(stock: Page, product: str) -> None:
    at = now()
    assert not stock["book"](f"{product}/1", product, -5, at)
    assert stock["book"](f"{product}/delivery-2", product, 1, now())
    assert not stock["book"](f"{product}/1", product, -5, at)
    assert stock["book"](f"{product}/2", product, -5, now())


def test_what_is_reserved_nobody_else_buys_and_it_is_paid_once(stock: Page, product: str) -> None:
    reserved = stock["reserve"](f"{product}/basket", product, 3, now())
    with pytest.raises(LimitReached):
        stock["reserve"](f"{product}/other", product, 2, now())
    for _ in range(2):
        stock["pay"](product, reserved)
    assert stock["reader"].read(f"stock:{product}").value == 1


def test_a_sale_is_one_write_unit_and_a_reservation_with_its_payment_two(
    stock: Page, account: Account, product: str
) -> None:
    with account.bill() as sale:
        assert stock["book"](f"{product}/1", product, -1, now())
    with account.bill() as paid:
        stock["pay"](product, stock["reserve"](f"{product}/basket", product, 3, now()))
    assert (sale.write_units, paid.write_units) == (1, 2)


# -- wallets -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wallet(account: Account) -> Page:
    account.without_shape()
    return run(RECIPES / "wallet.md")


@pytest.mark.parametrize("seed", range(5))
def test_a_transfer_repeated_until_it_returns_moves_the_money_once_whatever_fails(wallet: Page, seed: int) -> None:
    world = Simulation(("eu-west-1",), seed=seed, faults=Faults(throttled=150, dropped=150, lost=300, late=100))
    table, at = world.table("eu-west-1"), datetime.fromtimestamp(world.clock() / 1000, UTC)
    with instead(wallet, ledger=Ledger(wallet["settings"], table=table, clock=world.clock)):
        for payment, source, target in (("in", "outside", "wallet:ann"), ("pay-1", "wallet:ann", "wallet:bob")):
            for _ in range(100):
                with suppress(LedgerError):
                    assert wallet["transfer"](payment, source, target, 4, at)
                    break
    world.come_to_rest()
    calm = Reader(wallet["settings"], table=table, clock=world.clock)
    assert [calm.read(name).value for name in ("outside", "wallet:ann", "wallet:bob")] == [-4, 0, 4]


def test_between_its_two_changes_money_is_missing_and_never_doubled(wallet: Page) -> None:
    everyone, at = ["outside", "wallet:ann", "wallet:bob"], now()
    with instead(wallet, ledger=Mortal(wallet["ledger"], 2)), pytest.raises(Dies):
        wallet["transfer"]("pay-19", "wallet:ann", "wallet:bob", 100, at)
    assert wallet["on_its_way"](*everyone) == 100
    assert wallet["transfer"]("pay-19", "wallet:ann", "wallet:bob", 100, at)
    assert wallet["on_its_way"](*everyone) == 0


def test_a_transfer_is_two_write_units_and_so_is_its_retry(wallet: Page, account: Account) -> None:
    at = now()
    for _ in range(2):
        with account.bill() as bill:
            assert wallet["transfer"]("pay-21", "wallet:ann", "wallet:bob", 1, at)
        assert bill.write_units == 2


# -- likes -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def liking(account: Account) -> Page:
    account.create_table("likes", "post", "user")
    account.without_shape()
    return run(RECIPES / "likes.md")


def row_of(dynamodb: DynamoDBClient, user: str, post: str) -> dict[str, Any]:
    key = {"post": {"S": post}, "user": {"S": user}}
    return dict(dynamodb.get_item(TableName="likes", Key=key).get("Item", {}))


def test_what_the_stream_brings_twice_and_in_turns_counts_as_the_rows_say(liking: Page, account: Account) -> None:
    began, records = now(), []
    for i, (user, liked) in enumerate([("a", True), ("a", True), ("b", True), ("a", False), ("a", True), ("b", False)]):
        old = row_of(account.dynamodb, user, "p9")
        liking["press"](user, "p9", liked, began + timedelta(milliseconds=i))
        new = row_of(account.dynamodb, user, "p9")
        if new != old:
            records.append({"dynamodb": {"NewImage": new} | ({"OldImage": old} if old else {})})
    liking["handler"]({"Records": records}, None)
    liking["handler"]({"Records": records[2:]}, None)
    assert len(records) == 5
    assert value("likes:p9") == 1
    assert [row_of(account.dynamodb, user, "p9")["liked"]["BOOL"] for user in "ab"] == [True, False]


def test_an_old_press_that_arrives_late_does_not_turn_the_row_back(liking: Page, account: Account) -> None:
    began = now()
    liking["press"]("c", "p9", True, began + timedelta(seconds=1))
    liking["press"]("c", "p9", False, began)
    assert row_of(account.dynamodb, "c", "p9")["liked"]["BOOL"]


def test_a_turn_is_two_write_units_and_a_cached_page_costs_no_read(liking: Page, account: Account) -> None:
    with account.bill(liking["dynamodb"], key=("pk", "sk", "post", "user")) as bill:
        liking["press"]("d", "p9", True, now())
        row = row_of(account.dynamodb, "d", "p9")
        liking["handler"]({"Records": [{"dynamodb": {"NewImage": row}}]}, None)
    assert bill.write_units == 2
    liking["likes"](["p9"])
    with account.bill() as cached:
        liking["likes"](["p9"])
    assert cached.requests == 0


# -- tickets -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tickets(account: Account) -> Page:
    account.without_shape()
    return run(RECIPES / "tickets.md")


def test_places_of_a_buyer_who_does_not_pay_are_sold_again(tickets: Page) -> None:
    tickets["ledger"].set_limit("tickets:proms-13", ceiling=2)

    def refuses(*_: str) -> None:
        raise Dies

    with instead(tickets, charge=refuses), pytest.raises(Dies):
        tickets["buy"]("proms-13", "order-1", "ann", 2, now())
    assert [tickets["buy"]("proms-13", f"order-{n}", "bob", 2, now()) for n in (2, 3)] == [True, False]


def test_a_ticket_is_two_write_units(tickets: Page, account: Account) -> None:
    tickets["ledger"].add("tickets:proms-14", 0)  # makes the gate
    with account.bill() as bill:
        assert tickets["buy"]("proms-14", "order-1", "ann", 1, now())
    assert bill.write_units == 2
