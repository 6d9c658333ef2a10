"""What answers and failures say of their cost, and which call it belongs to."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import Any, cast

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)

from ledger import Cost, Ledger, Limit, Settings
from ledger.conditions import Absent
from ledger.cost import Meter, carried, here
from ledger.dynamo.send import TRIES_MAX
from ledger.errors import LedgerError, LimitReached, OutcomeUnknown
from ledger.memory import MemoryTable
from ledger.requests import At, Get, GetMany, Key, Put, PutMany, Query, Request, Together, Transact
from ledger.table import DynamoTable
from reader import Reader
from tests.ledger.test_table_errors import Attempts, Edge, Script, item, refusal, statements
from tests.world import NOW_MS

KEY = Key("p", "a")
PUT = Put(item(), Absent())
TOLD = {"ConsumedCapacity": {"CapacityUnits": 1.5}}


def of(table: Any, request: Request) -> Cost:
    with Meter() as meter, suppress(LedgerError):
        table.answer(request)
    return meter.take()


def retried(answer: dict[str, Any], retries: int) -> dict[str, Any]:
    return answer | {"ResponseMetadata": {"RetryAttempts": retries}}


LOST = ReadTimeoutError(endpoint_url="http://x")
NOWHERE = EndpointConnectionError(endpoint_url="http://x")
CASES: list[tuple[Request, list[Any], Cost]] = [
    (Get(KEY), [TOLD], Cost(1, 1, 1.5, 0)),
    (PUT, [TOLD], Cost(1, 1, 0, 1.5)),
    (PUT, [retried(TOLD, 2)], Cost(1, 3, 0, 1.5)),
    (PUT, [{}], Cost(1, 1, untold=1)),
    (GetMany((KEY,)), [{"Responses": {}, "ConsumedCapacity": []}], Cost(1, 1, untold=1)),
    (GetMany((KEY,)), [{"Responses": {}, "ConsumedCapacity": [{"CapacityUnits": 2}] * 2}], Cost(1, 1, 4, 0)),
    (Transact((PUT,)), [{"ConsumedCapacity": [{"CapacityUnits": 4, "ReadCapacityUnits": 4}]}], Cost(1, 1, 4, 0)),
    (Transact((PUT,)), [{"ConsumedCapacity": [{"CapacityUnits": 4, "WriteCapacityUnits": 4}]}], Cost(1, 1, 0, 4)),
    (PUT, [refusal("ConditionalCheckFailedException", retries=1)], Cost(1, 2, 0, 1)),
    (PUT, [refusal("ConditionalCheckFailedException", Item={**item(), "x": {"S": "x" * 2048}})], Cost(1, 1, 0, 3)),
    (PUT, [refusal("AccessDeniedException")], Cost(1, 1)),
    (PUT, [refusal("ThrottlingException"), refusal("ThrottlingException"), TOLD], Cost(3, 3, 0, 1.5)),
    (Transact((PUT, Put(item("b")))), [refusal("TransactionCanceledException")], Cost(1, 1, 0, 4)),
    (PUT, [LOST], Cost(1, 1, untold=1)),
    (Get(KEY), [NoCredentialsError()], Cost(0, 0)),
    (PutMany((item(), item("b"))), [statements(None, None) | TOLD], Cost(1, 1, 0, 1.5)),
    (At("us-east-1", Get(KEY)), [TOLD], Cost(1, 1, 1.5, 0)),
    (Query("p", after="b", upto="a"), [], Cost()),
]


@pytest.mark.parametrize(("request_", "script", "cost"), CASES)
def test_an_answer_and_a_failure_say_what_they_cost(request_: Request, script: list[Any], cost: Cost) -> None:
    assert of(Edge(*script).table, request_) == cost


def test_a_cancelled_transaction_whose_reasons_are_null_is_one_of_ours_and_reckoned() -> None:
    with Meter() as meter, pytest.raises(OutcomeUnknown):
        Edge(refusal("TransactionCanceledException", CancellationReasons=None)).answer(Transact((PUT,)))
    assert meter.take() == Cost(1, 1, 0, 2)


ODD_ANSWERS: list[dict[str, Any]] = [
    {"ConsumedCapacity": [None]},
    {"ConsumedCapacity": "much"},
    {"ConsumedCapacity": {"TableName": "counters"}},
    {"ConsumedCapacity": {"CapacityUnits": None}},
    {"ConsumedCapacity": {"CapacityUnits": 1.0, "ReadCapacityUnits": None}},
    {"ResponseMetadata": None},
    {"ResponseMetadata": {"RetryAttempts": None}},
]


@pytest.mark.parametrize("odd", ODD_ANSWERS)
def test_an_answer_that_says_its_cost_oddly_is_an_answer_all_the_same_and_told_nothing(odd: dict[str, Any]) -> None:
    with Meter() as meter:
        assert Edge(odd).answer(PUT) is None
    assert meter.take() == Cost(1, 1, untold=1)


@pytest.mark.parametrize("there", [{"a": {}}, {"a": {"N": "x"}}, {"a": {"?": 1}}, {"a": {"B": "text"}}])
def test_an_item_that_cannot_be_measured_is_shown_all_the_same(there: dict[str, Any]) -> None:
    with Meter() as meter:
        assert Edge(refusal("ConditionalCheckFailedException", Item=there)).answer(PUT) == there
    assert meter.take() == Cost(1, 1, untold=1)


def test_each_try_of_a_transaction_that_met_another_is_reckoned() -> None:
    conflict = refusal("TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}, {}])
    edge = Edge(*[conflict] * TRIES_MAX)
    assert of(edge.table, Transact((PUT, Put(item("b"))))) == Cost(TRIES_MAX, TRIES_MAX, 0, 4.0 * TRIES_MAX)


@pytest.mark.parametrize(
    ("script", "cost"),
    [([NOWHERE], Cost()), ([NOWHERE, 500], Cost(1, 2)), ([LOST, LOST, NOWHERE], Cost(1, 2, untold=1))],
    ids=str,
)
def test_attempts_are_those_that_the_sdk_sent(
    script: list[int | BotoCoreError], cost: Cost, monkeypatch: pytest.MonkeyPatch
) -> None:
    anew = map(copy, script)  # the library notes on an error how often it was sent
    assert of(Attempts(monkeypatch, *anew).table, PUT) == cost


def test_a_request_that_is_interrupted_told_nothing() -> None:
    class Interrupted(Script):
        def put_item(self, **_: Any) -> Any:
            raise KeyboardInterrupt

    table = DynamoTable("counters", "eu-west-1", lambda region: cast(Any, Interrupted([])))
    with Meter() as meter, pytest.raises(KeyboardInterrupt):
        table.answer(PUT)
    assert meter.take() == Cost(1, 1, untold=1)
    assert meter.take() == Cost()


@pytest.mark.parametrize("request_", [PUT, PutMany((item(),)), Get(KEY)])
def test_what_has_no_client_is_not_sent_and_costs_nothing(request_: Request) -> None:
    table = DynamoTable("counters", "eu-west-1", lambda region: cast(Any, None))
    assert of(table, request_) == Cost()


def test_requests_of_a_tables_own_threads_belong_to_the_call_that_asked() -> None:
    class Many(Script):
        def query(self, **_: Any) -> Any:
            return {"Items": [], **TOLD}

    table = DynamoTable("counters", "eu-west-1", lambda region: cast(Any, Many([])))
    with Meter() as meter:
        table.answer(Together(tuple(Query(str(n)) for n in range(30))))
    table.answer(Query("of no call"))
    assert meter.take() == Cost(30, 30, 45.0, 0.0)


def test_a_meter_goes_along_to_a_pool_by_carried_alone_and_a_thread_keeps_its_own() -> None:
    def spend(_: int) -> Meter:
        here().add(Cost(1))
        return here()

    with ThreadPoolExecutor(1) as pool:
        with Meter() as meter:
            assert {*pool.map(carried(spend), range(3))} == {meter}
            assert [*pool.map(spend, range(1))] != [meter]
        assert meter.take() == Cost(3)


def test_a_meter_ends_where_another_began() -> None:
    with Meter() as outer:
        with Meter() as inner:
            here().add(Cost(1))
        here().add(Cost(2))
    assert (outer.take(), inner.take()) == (Cost(2), Cost(1))
    assert here() not in (outer, inner)


def test_shares_add_up() -> None:
    cost = Cost(1, 2, 0.5, 3.0, 1)
    assert sum((cost.share(8) for _ in range(8)), start=Cost()) == cost


def test_a_table_in_memory_costs_nothing_and_a_receipt_is_what_it_is_whatever_it_cost() -> None:
    settings = Settings(table="counters", region="eu-west-1", limits={"stock:": Limit(floor=0)})
    table = MemoryTable()
    receipt = Ledger(settings, table=table, clock=lambda: NOW_MS).add("c", 1)
    assert receipt.cost == Cost()
    assert receipt == (dearer := replace(receipt, cost=Cost(9)))
    assert hash(receipt) == hash(dearer)
    assert "cost" not in repr(receipt)
    assert pickle.loads(pickle.dumps(dearer)).cost == Cost(9)
    balance = Reader(settings, table=table).read("c")
    assert balance.cost == Cost()
    assert balance == replace(balance, cost=Cost(9))
    with pytest.raises(LimitReached) as refused:
        Ledger(settings, table=table).add("stock:1", -1)
    assert refused.value.cost == Cost()
    assert pickle.loads(pickle.dumps(refused.value)).cost == Cost()


def test_an_error_that_was_raised_by_no_public_call_has_no_cost() -> None:
    with pytest.raises(LedgerError) as raised:
        Edge(refusal("AccessDeniedException")).answer(PUT)
    assert raised.value.cost is None
    assert isinstance(raised.value.__cause__, ClientError)
