"""What no engine does: a transaction that meets another one; and what is counted below the SDK."""

import json
from typing import Any

import pytest

from lab.designs.clients import Traffic, table_of
from lab.designs.design import pause
from ledger.dynamo.send import TRIES_MAX
from ledger.errors import OutcomeUnknown, TransactionConflict
from ledger.requests import Key, Transact, Update
from ledger.table import DynamoTable
from tests.lab.meters.test_meter import make_answered_client

ASKED = Transact((Update(Key("p", "s"), ()),), token="k")
DONE = 200, b"{}"


def cancelled(*codes: str) -> tuple[int, bytes]:
    reasons = [{"Code": code} for code in codes]
    return 400, json.dumps({"__type": "#TransactionCanceledException", "CancellationReasons": reasons}).encode()


def table(*answers: tuple[int, bytes]) -> tuple[DynamoTable, Traffic, list[Any], list[float]]:
    """A table that gives these answers, what its client counts, the requests, and the seconds that it waited."""
    client = make_answered_client(*answers)
    sent: list[Any] = []
    waited: list[float] = []
    client.meta.events.register("before-parameter-build.dynamodb", lambda params, **_: sent.append(params))
    made = table_of("t", client, waited.append)
    return made, Traffic(client), sent, waited


def test_a_transaction_that_meets_another_is_sent_again_under_its_token() -> None:
    made, traffic, sent, waited = table(cancelled("TransactionConflict"), cancelled("TransactionConflict"), DONE)
    assert made.answer(ASKED) is None
    assert len({request["ClientRequestToken"] for request in sent}) == 1
    assert waited == [0.05, 0.1]
    assert dict(traffic.counts) == {"calls": 3, "attempts": 3, "conflicts": 2, "throttled": 0, "refused": 0}


def test_a_transaction_that_always_meets_another_gives_up() -> None:
    made, _, sent, _ = table(*[cancelled("TransactionConflict")] * TRIES_MAX)
    with pytest.raises(TransactionConflict):
        made.answer(ASKED)
    assert len(sent) == TRIES_MAX


def test_what_the_sdk_sends_again_is_counted_and_what_got_no_answer_at_all_is_unknown() -> None:
    made, traffic, _, _ = table((500, b"{}"), cancelled("ConditionalCheckFailed"))
    assert made.answer(ASKED) == ({},)
    assert (traffic.retries, traffic.counts["refused"]) == (1, 1)
    made, _, _, _ = table((500, b"{}"))
    with pytest.raises(OutcomeUnknown):
        made.answer(ASKED)


def test_each_pause_may_be_twice_as_long_as_the_one_before_up_to_a_bound() -> None:
    made, _, _, waited = table(DONE)
    for attempt in (0, 1, 2, 5, 11):
        made.answer(pause(attempt))
    assert waited == [0.05, 0.1, 0.2, 1.6, 1.6]
