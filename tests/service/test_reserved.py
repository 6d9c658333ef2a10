"""What callers of the API and the queue may not write: the service's own counters, and names beside those allowed."""

import io
import itertools
import json
from typing import Any

import pytest

from ledger import Ledger
from ledger.errors import InvalidSettings
from ledger.memory import MemoryTable
from service import observe
from service.add_from_queue.handler import AddFromQueue
from service.canary.handler import COUNTER as CANARY
from service.canary.handler import Canary
from service.observe import Watch
from service.sqs import SqsQueue
from service.writable import PREFIXES_FROM, Names
from tests.service.http_client import NOW_MS, SETTINGS, ULID, ULID_AT, Client
from tests.service.support import sqs

NUMBERS = itertools.count()
STOCK = Names(("stock:", "seats:"))


class Sqs:
    def __init__(self) -> None:
        self.buried: list[tuple[str, str]] = []

    def send_message(self, *, QueueUrl: str, MessageBody: str, MessageAttributes: Any) -> dict[str, str]:
        self.buried.append((MessageBody, MessageAttributes["LedgerError"]["StringValue"]))
        return {"MessageId": "x"}


def change(counter: str, key: str) -> dict[str, Any]:
    return {"counter": counter, "change": 1, "idempotency_key": key, "at": ULID_AT}


@pytest.mark.parametrize(("counter", "names"), [(CANARY, Names()), ("ledger:", Names()), ("other", STOCK)])
def test_a_name_that_is_reserved_or_not_allowed_is_refused_by_http_and_nothing_is_written(
    counter: str, names: Names
) -> None:
    client = Client(names=names)
    answer = client.add(1, counter=counter)
    assert (answer.status, answer.problem) == (422, "invalid-request")
    (error,) = answer.said["errors"]
    assert error["at"] == "counter"
    assert "ledger:" in error["error"] or "stock:, seats:" in error["error"]
    bulk = client.ask("POST", "/deltas", {"deltas": [change(counter, "1"), change("stock:1", "2")]}).said["results"]
    assert [each["status"] for each in bulk] == [422, 201]
    held = {"counter": counter, "amount": 1, "expires_s": 60, "at": ULID_AT}
    assert client.ask("POST", f"/counters/{counter}/holds", held, {"Idempotency-Key": ULID}).status == 422
    for how in ("capture", "release"):
        said = {"counter": counter} | ({"amount": 1} if how == "capture" else {})
        assert client.ask("POST", f"/counters/{counter}/holds/{ULID}.eu-west-1.0.1/{how}", said).status == 422
    assert all(counter not in item["pk"]["S"] for item in client.table.items.values())
    assert client.read(counter).status == 200  # its value is no secret of the service


def test_a_change_of_such_a_name_on_the_queue_is_a_dead_letter_and_the_others_of_its_message_count() -> None:
    table, client = MemoryTable(), Sqs()
    watch = Watch.here(f"reserved-{next(NUMBERS)}", io.StringIO())
    add = AddFromQueue(
        Ledger(SETTINGS, table=table, clock=lambda: NOW_MS),
        watch,
        pack=True,
        names=STOCK,
        dead_letters=SqsQueue("dlq", client),
        clock=lambda: NOW_MS,
    )
    mixed = json.dumps({"changes": [change("stock:1", "1"), change(CANARY, "2"), change("stock:2", "3")]})
    other = json.dumps(change("other", "4"))
    assert add(sqs(mixed, other, json.dumps(change("stock:3", "5")))) == {"batchItemFailures": []}
    assert client.buried == [(mixed, "InvalidCounter"), (other, "InvalidCounter")]
    written = {item["pk"]["S"].rpartition("#")[2] for item in table.items.values()}
    assert written == {"stock:1", "stock:2", "stock:3"}
    assert watch.metrics.metric_set[observe.DELTAS_REFUSED]["Value"] == [2.0]


def test_the_canary_adds_to_its_own_counter_and_a_process_with_the_library_to_every_name() -> None:
    table = MemoryTable()
    canary = Canary(SETTINGS, table, Watch.here(f"reserved-{next(NUMBERS)}", io.StringIO()), clock=lambda: NOW_MS)
    assert canary()["read"] is True
    assert Ledger(SETTINGS, table=table, clock=lambda: NOW_MS).add("ledger:mine", 1).outcome == "recorded"


def test_allowed_prefixes_are_a_json_list_of_the_environment() -> None:
    assert Names.of({}) == Names.of({PREFIXES_FROM: "[]"}) == Names()
    assert Names.of({PREFIXES_FROM: '["stock:", "seats:"]'}) == STOCK
    for wrong in ("stock:", '"stock:"', '{"stock:": 1}', '["two words"]', "[1]"):
        with pytest.raises(InvalidSettings, match=PREFIXES_FROM):
            Names.of({PREFIXES_FROM: wrong})
