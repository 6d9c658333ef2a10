"""The recipes that count: each page is run as it stands, and what it says about retries, crashes and costs is tried."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ledger import Ledger
from ledger.errors import LedgerError, TokenConflict
from reader import Reader
from simulator import Faults, Simulation
from tests.docs.conftest import SETTINGS, Account, value
from tests.docs.pages import RECIPES, Dies, Mortal, instead, run

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

Page = dict[str, Any]


def now() -> datetime:
    return datetime.now(UTC)


# -- LLM tokens --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def quota(account: Account) -> Page:
    return run(RECIPES / "token-quota.md")


def test_an_answer_that_is_recorded_twice_counts_once_and_in_its_own_month(quota: Page, account: Account) -> None:
    last_of_october = datetime(2026, 10, 31, 23, 59, 59, tzinfo=UTC)
    for _ in range(2):
        with account.bill() as bill:
            quota["record"]("r1", "a", 700, last_of_october)
        assert bill.write_units == 1
    quota["record"]("r2", "a", 50, last_of_october + timedelta(seconds=1))
    assert [value(f"llm:a:2026-{month}") for month in (10, 11)] == [700, 50]


def test_calls_that_passed_the_check_together_pass_the_quota_by_what_they_use(quota: Page) -> None:
    quota["record"]("r0", "b", 99, at := now())
    passed = [quota["may_call"]("b", 100, at) for _ in range(3)]
    for i, _ in enumerate(passed):
        quota["record"](f"call-{i}", "b", 90, at)
    assert passed == [True, True, True]
    assert value(quota["counter_of"]("b", at)) == 99 + 3 * 90
    with instead(quota, reader=Reader(SETTINGS, ttl=30.0)):
        assert not quota["may_call"]("b", 100, at)


# -- stock -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stock(account: Account) -> Page:
    account.create_table("shop", "id")
    return run(RECIPES / "stock.md")


def available(dynamodb: DynamoDBClient, product: str) -> int:
    return int(dynamodb.get_item(TableName="shop", Key={"id": {"S": f"gate#{product}"}})["Item"]["available"]["N"])


@pytest.fixture
def product(stock: Page, account: Account, request: pytest.FixtureRequest) -> str:
    """A product of which four pieces were delivered."""
    name: str = request.node.name
    account.dynamodb.put_item(TableName="shop", Item={"id": {"S": f"gate#{name}"}, "available": {"N": "0"}})
    assert stock["book"](f"{name}/delivery", name, 4, now())
    return name


def test_nothing_is_sold_that_is_not_there(stock: Page, account: Account, product: str) -> None:
    sold = [stock["book"](f"{product}/{i}", product, -1, now()) for i in range(6)]
    assert sold == [True] * 4 + [False] * 2
    assert value(f"stock:{product}") == available(account.dynamodb, product) == 0


def test_a_sale_whose_process_died_is_completed_by_a_retry(stock: Page, account: Account, product: str) -> None:
    at = now()
    with instead(stock, ledger=Mortal(Ledger(SETTINGS), 1)), pytest.raises(Dies):
        stock["book"](f"{product}/1", product, -3, at)
    assert (available(account.dynamodb, product), value(f"stock:{product}")) == (1, 4)
    for _ in range(2):
        assert stock["book"](f"{product}/1", product, -3, at)
    assert (available(account.dynamodb, product), value(f"stock:{product}")) == (1, 1)


def test_a_sale_that_was_refused_may_be_made_after_a_delivery(stock: Page, product: str) -> None:
    at = now()
    assert not stock["book"](f"{product}/1", product, -5, at)
    assert stock["book"](f"{product}/delivery-2", product, 1, now())
    assert stock["book"](f"{product}/1", product, -5, at)
    assert value(f"stock:{product}") == 0


def test_a_sale_is_five_write_units_and_a_refused_one_four(stock: Page, account: Account, product: str) -> None:
    with account.bill(stock["dynamodb"], key=("pk", "sk", "id")) as sale:
        assert stock["book"](f"{product}/1", product, -1, now())
    with account.bill(stock["dynamodb"], key=("pk", "sk", "id")) as refused:
        assert not stock["book"](f"{product}/2", product, -9, now())
    assert (sale.write_units, refused.write_units) == (5, 4)


# -- wallets -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wallet(account: Account) -> Page:
    return run(RECIPES / "wallet.md")


@pytest.mark.parametrize("seed", range(10))
def test_a_transfer_repeated_until_it_returns_moves_the_money_once_whatever_fails(wallet: Page, seed: int) -> None:
    world = Simulation(("eu-west-1",), seed=seed, faults=Faults(throttled=150, dropped=150, lost=300, late=100))
    table, at = world.table("eu-west-1"), datetime.fromtimestamp(world.clock() / 1000, UTC)
    with instead(wallet, ledger=Ledger(SETTINGS, table=table, clock=world.clock)):
        for _ in range(100):
            with suppress(LedgerError):
                wallet["transfer"]("pay-1", "ann", "bob", 4, at)
                break
    world.come_to_rest()
    calm = Reader(SETTINGS, table=table, clock=world.clock)
    assert [calm.read(f"wallet:{name}").value for name in ("ann", "bob")] == [-4, 4]


def test_between_its_two_changes_money_is_missing_and_never_doubled(wallet: Page) -> None:
    everyone, at = ["outside", "ann", "bob"], now()
    with instead(wallet, ledger=Mortal(Ledger(SETTINGS), 2)), pytest.raises(Dies):
        wallet["transfer"]("pay-19", "ann", "bob", 100, at)
    assert wallet["on_its_way"](everyone) == 100
    wallet["transfer"]("pay-19", "ann", "bob", 100, at)
    assert wallet["on_its_way"](everyone) == 0


def test_a_payment_with_another_amount_is_refused_and_with_another_wallet_is_not(wallet: Page) -> None:
    wallet["transfer"]("pay-20", "ann", "bob", 1, at := now())
    with pytest.raises(TokenConflict):
        wallet["transfer"]("pay-20", "ann", "bob", 2, at)
    before = value("wallet:cleo")
    wallet["transfer"]("pay-20", "ann", "cleo", 1, at)
    assert value("wallet:cleo") == before + 1


def test_a_transfer_is_two_write_units_and_so_is_its_retry(wallet: Page, account: Account) -> None:
    at = now()
    for _ in range(2):
        with account.bill() as bill:
            wallet["transfer"]("pay-21", "ann", "bob", 1, at)
        assert bill.write_units == 2


# -- likes -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def liking(account: Account) -> Page:
    account.create_table("likes", "post", "user")
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
    account.create_table("seats", "concert", "seat")
    return run(RECIPES / "tickets.md")


@pytest.mark.parametrize("completed_by", ["a retry", "the sweep"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_seat_sold_by_a_process_that_died_is_counted_once(tickets: Page, completed_by: str, nth: int) -> None:
    concert = f"{completed_by.split()[1]}-{nth}"
    with instead(tickets, ledger=Mortal(Ledger(SETTINGS), nth)), pytest.raises(Dies):
        tickets["buy"](concert, "A2", "ann", 3_000)
    assert not tickets["buy"](concert, "A2", "bob", 3_000)
    assert (value(f"tickets:{concert}"), value(f"takings:{concert}")) == (nth - 1, 0)
    if completed_by == "a retry":
        assert tickets["buy"](concert, "A2", "ann", 3_000)
    else:
        tickets["sweep"](concert)
    assert (value(f"tickets:{concert}"), value(f"takings:{concert}")) == (1, 3_000)
    tickets["sweep"](concert)
    assert (value(f"tickets:{concert}"), value(f"takings:{concert}")) == (1, 3_000)


def test_a_ticket_is_three_write_units_and_a_taken_seat_one(tickets: Page, account: Account) -> None:
    with account.bill(tickets["dynamodb"], key=("pk", "sk", "concert", "seat")) as sold:
        assert tickets["buy"]("proms-13", "A4", "ann", 500)
    with account.bill(tickets["dynamodb"], key=("pk", "sk", "concert", "seat")) as taken:
        assert not tickets["buy"]("proms-13", "A4", "bob", 500)
    assert (sold.write_units, taken.write_units) == (3, 1)
