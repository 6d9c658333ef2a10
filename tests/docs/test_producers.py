"""What the pages say to producers is held against the code: messages, state machine, token, and
the retry contract.
"""

import json
import math
import re
from datetime import UTC, datetime

import pytest

from ledger import Change, Delta, Receipt, Then
from ledger.client.message import NAMES, dumps, dumps_many, loads, loads_many
from ledger.client.queue import MESSAGE_BYTES_MAX
from ledger.core import errors, tokens
from ledger.core.checks import to_ms
from ledger.core.values import Lane
from ledger.tables import boto as client
from service.add_from_queue.outcomes import outcome_of
from tests.docs.pages import DOCS, blocks, rows
from tests.ledger.test_queue import Queue, small

PAGE = DOCS / "producers.md"
RETRIES = DOCS / "retries.md"
ANSWERS = [
    (what, written, do)
    for what, written, do in rows(RETRIES, "`add`, `apply`, and `add_many` for each change")
]
OF_OTHERS = {"ReadTooSlow", "LaneDamaged", "LaneUnread"}
MESSAGE, MESSAGE_OF_MANY, TRANSFER, OUTCOME = (json.loads(block) for block in blocks(PAGE, "json"))
AT = datetime(2010, 12, 1, 8, 26, tzinfo=UTC)


def test_the_messages_are_what_the_library_writes_and_reads() -> None:
    sale = Change("stock:85123A", -6, "536365/1", AT)
    assert json.loads(dumps(sale)) == MESSAGE
    assert loads(json.dumps(MESSAGE)) == sale
    both = [sale, Change("stock:71053", -8, "536365/2", AT)]
    assert (json.loads(dumps_many(both)), loads_many(json.dumps(MESSAGE_OF_MANY))) == (
        MESSAGE_OF_MANY,
        both,
    )
    paid = Change("wallet:ann", -2_550, "pay-17", AT, then=Then("wallet:bob", 2_550))
    assert (json.loads(dumps(paid)), loads(json.dumps(TRANSFER))) == (TRANSFER, paid)
    assert tuple(row[0].strip("`") for row in rows(PAGE, "field | |")) == NAMES


def test_the_message_of_an_outcome_is_what_the_function_writes() -> None:
    order = Change("seats:gig", -1, "order/77", AT)
    at_ms = to_ms(AT)
    delta = Delta(
        Lane("eu-west-1", 0, "seats:gig"), tokens.keyed("seats:gig", "order/77", at_ms), -1
    )
    refusal = errors.LimitReached("no")
    refusal.delta = delta
    written = [outcome_of(order, what) for what in (refusal, Receipt("replayed", delta))]
    assert [json.loads(text or "") for text in written] == [
        OUTCOME,
        OUTCOME | {"outcome": "counted"},
    ]


@pytest.mark.parametrize(("bytes_max", "said"), [(1, "0.3"), (MESSAGE_BYTES_MAX, "0.004")])
def test_transport_costs_what_the_page_says(
    monkeypatch: pytest.MonkeyPatch, bytes_max: int, said: str
) -> None:
    """A batch sent, received and deleted; SQS bills a request for each 64 KiB."""
    monkeypatch.setattr("ledger.client.queue.MESSAGE_BYTES_MAX", bytes_max)
    queue, changes = Queue(), [small(n) for n in range(10_000)]
    queue.open().send_many(changes)
    carried = [sum(len(body.encode()) for body in batch) for batch in queue.batches]
    billed = sum(2 * math.ceil(size / 65_536) + 1 for size in carried)
    assert f"{billed / len(changes):.1g}" == said
    page = " ".join(PAGE.read_text().split())
    assert re.search(rf"(costs {said} requests of SQS|some 250 changes, {said})", page)


ERRORS = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.LedgerError)
}
LEAVES = {
    name for name, kind in ERRORS.items() if not {*kind.__subclasses__()} & {*ERRORS.values()}
}
"""Of which there are no kinds."""


def named(cell: str) -> set[str]:
    return set(re.findall(r"`([A-Z]\w+)`", cell)) - {"ChangeQueue"}


def test_every_error_of_an_add_has_its_row() -> None:
    written = {name: whether for what, whether, _ in ANSWERS for name in named(what)}
    known = {name for name in LEAVES if not issubclass(ERRORS[name], errors.InvalidInput)}
    assert known - OF_OTHERS == set(written) - {"InvalidInput"}
    for name, whether in written.items():
        assert whether.startswith("no") == (
            "othing was written" in " ".join(str(ERRORS[name].__doc__).split())
        ), name
    same = [
        named(what)
        for what, _, do in ANSWERS
        if "the same again" in do and "then the same" not in do
    ]
    assert {name for name in LEAVES if issubclass(ERRORS[name], errors.Again)} == set().union(*same)
    assert f": one put, up to {client.ATTEMPTS} times in all." in RETRIES.read_text()
