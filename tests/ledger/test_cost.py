"""What answers and failures say of their cost, and which call it belongs to."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, cast

import pytest
from botocore.exceptions import NoCredentialsError

from ledger import Cost
from ledger.core.actions import Add
from ledger.core.conditions import Absent
from ledger.core.cost import Meter, carried, here
from ledger.core.errors import LedgerError
from ledger.core.requests import At, Get, GetMany, Put, PutMany, Query, Request, Transact, Update
from ledger.tables.dynamo import DynamoTable
from ledger.tables.send import TRIES_MAX
from tests.ledger.test_table_errors import (
    KEY,
    LOST,
    PUT,
    UNTOLD,
    Edge,
    Script,
    item,
    refusal,
    statements,
)
from tests.world import A, settings

SAYS = {"ConsumedCapacity": {"CapacityUnits": 1.5}}
BOTH = Transact((PUT, Put(item("b"))))
CONFLICT = refusal(
    "TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}, {}]
)


LARGE = {**item(), "x": {"S": "x" * 2048}}


def of(table: Any, request: Request) -> Cost:
    with Meter() as meter, suppress(LedgerError):
        table.answer(request)
    return meter.take()


def retried(answer: dict[str, Any], retries: int) -> dict[str, Any]:
    return answer | {"ResponseMetadata": {"RetryAttempts": retries}}


CASES: list[tuple[Request, list[Any], Cost]] = [
    (Get(KEY), [SAYS], Cost(1, 1, 1.5, 0)),
    (PUT, [SAYS], Cost(1, 1, 0, 1.5)),
    (PUT, [retried(SAYS, 2)], Cost(1, 3, 0, 1.5)),
    (PUT, [{}], UNTOLD),
    (GetMany((KEY,)), [{"Responses": {}, "ConsumedCapacity": []}], UNTOLD),
    (
        GetMany((KEY,)),
        [{"Responses": {}, "ConsumedCapacity": [{"CapacityUnits": 2}] * 2}],
        Cost(1, 1, 4, 0),
    ),
    (
        Transact((PUT,)),
        [{"ConsumedCapacity": [{"CapacityUnits": 4, "ReadCapacityUnits": 4}]}],
        Cost(1, 1, 4, 0),
    ),
    (
        Transact((PUT,)),
        [{"ConsumedCapacity": [{"CapacityUnits": 4, "WriteCapacityUnits": 4}]}],
        Cost(1, 1, 0, 4),
    ),
    (PUT, [refusal("ConditionalCheckFailedException", retries=1)], Cost(1, 2, 0, 1)),
    (PUT, [refusal("ConditionalCheckFailedException", Item=LARGE)], Cost(1, 1, 0, 3)),
    (
        Update(KEY, (Add("n", 1),), Absent()),
        [refusal("ConditionalCheckFailedException", Item=LARGE)],
        Cost(1, 1, 0, 3),
    ),
    (PUT, [refusal("AccessDeniedException")], Cost(1, 1)),
    (
        PUT,
        [refusal("ThrottlingException"), refusal("ThrottlingException"), SAYS],
        Cost(3, 3, 0, 1.5),
    ),
    (BOTH, [refusal("TransactionCanceledException")], Cost(1, 1, 0, 4)),
    (BOTH, [CONFLICT] * TRIES_MAX, Cost(TRIES_MAX, TRIES_MAX, 0, 4.0 * TRIES_MAX)),
    (
        Transact((PUT,)),
        [refusal("TransactionCanceledException", CancellationReasons=None)],
        Cost(1, 1, 0, 2),
    ),
    (PUT, [LOST[0]], UNTOLD),
    (Get(KEY), [NoCredentialsError()], Cost(0, 0)),
    (PutMany((item(), item("b"))), [statements(None, None) | SAYS], Cost(1, 1, 0, 1.5)),
    (At("us-east-1", Get(KEY)), [SAYS], Cost(1, 1, 1.5, 0)),
    (Query("p", after="b", upto="a"), [], Cost()),
]


def test_an_answer_and_a_failure_say_what_they_cost() -> None:
    for request, script, cost in CASES:
        assert of(Edge(*script).table, request) == cost, (request, script)
    # an INSERT, and a look
    client: Any = Script([refusal("DuplicateItemException"), {**SAYS, "Item": LARGE}])
    put = Put({**LARGE, "pk": {"S": "delta#eu-west-1#0#c"}}, Absent())
    assert of(DynamoTable.of(settings(insert_only=True), {A: client}), put) == Cost(2, 2, 1.5, 3)


def test_a_cost_said_oddly_or_that_fails_is_told_nothing() -> None:
    odd: list[Any] = [[None], "much", {"TableName": "counters"}, {"CapacityUnits": None}]
    odd.append({"CapacityUnits": 1.0, "ReadCapacityUnits": None})
    answers = [{"ConsumedCapacity": said} for said in odd]
    for answer in (
        *answers,
        {"ResponseMetadata": None},
        {"ResponseMetadata": {"RetryAttempts": None}},
    ):
        with Meter() as meter:
            assert Edge(answer).answer(PUT) is None
        assert meter.take() == UNTOLD
    items: list[dict[str, Any]] = [
        {"a": {}},
        {"a": {"N": "x"}},
        {"a": {"?": 1}},
        {"a": {"B": "text"}},
    ]
    for there in items:
        with Meter() as meter:
            assert Edge(refusal("ConditionalCheckFailedException", Item=there)).answer(PUT) == there
        assert meter.take() == UNTOLD


def test_an_interrupted_or_unsendable_request_tells_nothing() -> None:
    with Meter() as meter, pytest.raises(KeyboardInterrupt):
        Edge(KeyboardInterrupt()).answer(PUT)
    assert [meter.take(), meter.take()] == [UNTOLD, Cost()]
    table = DynamoTable("counters", "eu-west-1", lambda region: cast(Any, None))
    assert [of(table, request) for request in (PUT, PutMany((item(),)), Get(KEY))] == [Cost()] * 3


def test_a_meter_goes_to_a_pool_by_carried_alone() -> None:
    def spend(_: int) -> Meter:
        here().add(Cost(1))
        return here()

    with ThreadPoolExecutor(1) as pool, Meter() as outer:
        with Meter() as inner:
            assert {*pool.map(carried(spend), range(3))} == {inner}
            assert [*pool.map(spend, range(1))] != [inner]
        here().add(Cost(2))
        with Meter():
            Meter().__enter__()  # interrupted as it began
        assert here() is outer
    assert (outer.take(), inner.take()) == (Cost(2), Cost(3))
    assert here() not in (outer, inner)
    cost = Cost(1, 2, 0.5, 3.0, 1)
    assert sum((cost.share(8) for _ in range(8)), start=Cost()) == cost
