"""No error speaks for another attempt: what a call ends with is true of all that it sent
(lab/histories/parts/calls.py).
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lab.histories.parts.calls import (
    CASES,
    FAR_MS,
    LATER_MS,
    A,
    called_with,
    changes,
    held,
    named,
    plans,
    settings,
)
from ledger import Ledger
from ledger.core.checks import to_datetime
from ledger.core.errors import OutcomeUnknown
from ledger.core.running import or_error
from tests.contract.conftest import SMOKE

ASYNC = ("add_many of a limited counter", "capture", "hold_all", "transfer")


@pytest.mark.skipif(bool(SMOKE), reason="in memory")
@pytest.mark.parametrize("name", CASES)
def test_no_error_denies_what_an_earlier_request_wrote(name: str) -> None:
    wrong = {lie: plan for plan in plans(CASES[name]) for lie in called_with(CASES[name], *plan)[1]}
    assert not wrong


@pytest.mark.skipif(bool(SMOKE), reason="in memory")
@pytest.mark.parametrize("name", ASYNC)
def test_nor_of_an_awaited_call(name: str) -> None:
    case = CASES[name]
    wrong = {
        lie: plan
        for plan in plans(case, awaits=True)
        for lie in called_with(case, *plan, awaits=True)[1]
    }
    assert not wrong


class Resending:
    """A client whose SDK sends one request twice, the first of an operation, and whose later
    requests are refused.
    """

    def __init__(self, client: Any, operation: str) -> None:
        self._client, self._operation, self._sent = client, operation, False

    def __getattr__(self, operation: str) -> Any:
        def call(**arguments: Any) -> Any:
            if self._sent:
                raise ClientError(
                    {"Error": {"Code": "ExpiredTokenException", "Message": "old"}}, operation
                )
            send = getattr(self._client, operation)
            if operation != self._operation:
                return send(**arguments)
            self._sent = True
            send(**arguments)
            try:
                answer = send(**arguments)
            except ClientError as failure:
                failure.response["ResponseMetadata"]["RetryAttempts"] = 1
                raise
            answer["ResponseMetadata"]["RetryAttempts"] = 1
            return answer

        return call


ON_ENGINES: dict[str, tuple[str, Callable[[Ledger, Any], Any], bool]] = {
    "add by INSERT": (
        "execute_statement",
        lambda ledger, _: ledger.add("plain", 1, **named("a")),
        True,
    ),
    "add_many": (
        "batch_execute_statement",
        lambda ledger, _: ledger.add_many(changes("plain")),
        False,
    ),
    "capture": ("update_item", lambda ledger, hold: ledger.capture(hold, -3), False),
    "set_limit": ("update_item", lambda ledger, _: ledger.set_limit("lim", ceiling=500), False),
}


@pytest.mark.skipif(bool(SMOKE), reason="the table's own engines")
@pytest.mark.parametrize("name", ON_ENGINES)
@pytest.mark.parametrize("kind", ["engine", "dynamodb_local"])
def test_nor_of_a_call_whose_request_the_sdk_sent_twice(
    request: pytest.FixtureRequest, table_names: Iterator[str], kind: str, name: str
) -> None:
    engine, table = request.getfixturevalue(kind), next(table_names)
    operation, call, insert_only = ON_ENGINES[name]
    engine.create_table(table, A)
    made = settings(A, table=table, insert_only=insert_only)
    given: Any = {"clock": lambda: LATER_MS}
    plain = Ledger(made, client=engine.client(A), **given)
    plain.add("lim", 100, idempotency_key="first", at=to_datetime(LATER_MS - FAR_MS))
    hold = held(plain)
    client: Any = Resending(engine.client(A), operation)
    ledger = Ledger(made, client=client, **given)
    answer = or_error(call, ledger, hold)
    answers: list[Any] = answer if isinstance(answer, list) else [answer]
    assert {*map(type, answers)} == {OutcomeUnknown}
