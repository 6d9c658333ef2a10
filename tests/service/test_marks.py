"""The marks, on every table: in memory, on moto, on the engine."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from lab.engines.ministack import Engine
from ledger import items
from ledger.errors import TableMissing
from ledger.memory import MemoryTable
from ledger.requests import Get, Key, Put, Table
from ledger.table import DynamoTable
from ledger.values import Lane
from service.marks import (
    BUCKETS,
    LEASE_MS,
    QUIET_MS,
    TOUCH_EVERY_MS,
    Again,
    Claim,
    Hold,
    Mark,
    Rest,
    Touch,
    after_visit,
    buckets_of,
    key_of,
    mark_of,
)
from service.marks_table import Marks
from tests.service.support import MemoryMarks
from tests.support import LANE, A

SCHEMA: Any = {
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "S"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
}


class Marked:
    """A table and its marks."""

    def __init__(self, table: Table, marks: Any) -> None:
        self.table, self._marks = table, marks

    def do(self, request: Any) -> Any:
        return self._marks.answer(request)

    def mark(self, lane: Lane = LANE) -> Mark | None:
        item = self.table.answer(Get(key_of(lane)))
        return None if item is None else mark_of(item)

    def seen(self) -> Mark:
        mark = self.mark()
        assert mark is not None
        return mark


@pytest.fixture(params=["memory", "moto", "engine"])
def marked(request: pytest.FixtureRequest, table_names: Iterator[str]) -> Iterator[Marked]:
    match request.param:
        case "memory":
            table = MemoryTable()
            yield Marked(table, MemoryMarks(table))
        case "moto":
            with mock_aws():
                client = boto3.client("dynamodb", A, aws_access_key_id="x", aws_secret_access_key="x")
                client.create_table(TableName="counters", **SCHEMA)
                yield Marked(DynamoTable("counters", A, lambda _: client), Marks("counters", client))
        case _:
            engine: Engine = request.getfixturevalue("engine")
            name = next(table_names)
            engine.create_table(name, A)
            client = engine.client(A)
            yield Marked(DynamoTable(name, A, lambda _: client), Marks(name, client))
            client.close()


def test_a_touch_makes_a_mark_and_a_later_one_asks_for_nothing_later(marked: Marked) -> None:
    marked.do(Touch(LANE, 1_000, 11_000))
    assert marked.mark() == Mark(LANE, due_ms=11_000, touched_ms=1_000)
    marked.do(Touch(LANE, 2_000, 12_000))
    assert marked.mark() == Mark(LANE, due_ms=11_000, touched_ms=2_000)
    marked.do(Touch(LANE, 3_000, 3_000, late=True))
    assert marked.mark() == Mark(LANE, due_ms=11_000, touched_ms=3_000, late_ms=3_000)


def test_a_mark_is_claimed_once(marked: Marked) -> None:
    marked.do(Touch(LANE, 1_000, 11_000))
    seen = marked.seen()
    assert [marked.do(Claim(seen, 400_000)) for _ in range(2)] == [True, False]
    assert marked.mark() == Mark(LANE, due_ms=11_000, touched_ms=1_000, held_ms=400_000)
    assert marked.do(Claim(marked.seen(), 800_000)) is True  # the lease passed and nobody came


def test_a_touch_does_not_end_a_lease(marked: Marked) -> None:
    marked.do(Touch(LANE, 1_000, 11_000))
    marked.do(Claim(marked.seen(), 400_000))
    marked.do(Touch(LANE, 20_000, 30_000))
    assert not marked.seen().is_due(399_999)
    assert marked.seen().is_due(400_000)


def test_a_claim_of_what_was_seen_before_a_visit_is_refused(marked: Marked) -> None:
    marked.do(Touch(LANE, 1_000, 11_000))
    seen = marked.seen()
    marked.do(Claim(seen, 400_000))
    marked.do(Rest(LANE, 1_000, 700_000))
    assert marked.do(Claim(seen, 500_000)) is False


def test_a_mark_that_nobody_touched_meanwhile_is_removed(marked: Marked) -> None:
    marked.do(Touch(LANE, 1_000, 11_000))
    marked.do(Claim(marked.seen(), 400_000))
    assert marked.do(Rest(LANE, 1_000, None)) is True
    assert marked.mark() is None
    assert marked.do(Rest(LANE, None, None)) is True  # there was none


@pytest.mark.parametrize("next_ms", [None, 700_000])
def test_a_mark_that_was_touched_meanwhile_stays_as_it_is(marked: Marked, next_ms: int | None) -> None:
    marked.do(Touch(LANE, 1_000, 11_000))
    before = marked.seen().touched_ms
    marked.do(Touch(LANE, 2_000, 12_000))
    seen = marked.mark()
    assert marked.do(Rest(LANE, before, next_ms)) is False
    assert marked.do(Rest(LANE, None, next_ms)) is False
    assert marked.mark() == seen


def test_a_lane_at_rest_has_its_next_visit_and_no_lease(marked: Marked) -> None:
    marked.do(Touch(LANE, 1_000, 1_000, late=True))
    marked.do(Claim(marked.seen(), 400_000))
    assert marked.do(Rest(LANE, 1_000, 700_000)) is True
    assert marked.mark() == Mark(LANE, next_ms=700_000, touched_ms=1_000)
    marked.do(Touch(LANE, 90_000, 100_000))
    assert marked.seen().wake_ms == 100_000  # a delta does not wait for what was planned


@pytest.mark.parametrize("next_ms", [None, 700_000])
def test_a_lane_that_may_have_unserved_touches_is_due_again(marked: Marked, next_ms: int | None) -> None:
    marked.do(Touch(LANE, 1_000, 11_000))
    marked.do(Claim(marked.seen(), 400_000))
    marked.do(Again(LANE, 30_000, next_ms))
    assert marked.mark() == Mark(LANE, due_ms=30_000, next_ms=next_ms, touched_ms=1_000)


def test_a_held_lane_is_not_due_whatever_touches_it(marked: Marked) -> None:
    marked.do(Hold(LANE, 3_600_000))
    marked.do(Touch(LANE, 1_000, 1_000, late=True))
    assert [marked.seen().is_due(ms) for ms in (0, 3_599_999, 3_600_000)] == [False, False, True]


def test_marks_are_none_of_the_ledgers_items(marked: Marked) -> None:
    marked.do(Touch(LANE, 1_000, 11_000))
    assert items.lane_of(key_of(LANE).pk) is None
    assert items.lane_of("mark#eu-west-1#0#stock") is None


def test_a_missing_table_is_one_of_our_errors() -> None:
    with mock_aws():
        client = boto3.client("dynamodb", A, aws_access_key_id="x", aws_secret_access_key="x")
        with pytest.raises(TableMissing):
            Marks("counters", client).answer(Touch(LANE, 1, 1))


def test_what_is_no_request_of_marks_is_refused() -> None:
    with pytest.raises(TypeError):
        Marks("counters", None).answer(Get(key_of(LANE)))  # type: ignore[arg-type]


# -- pure -------------------------------------------------------------------------------------------------------------


def item(pk: str = f"mark#{A}#0", sk: str = "0#a", **attributes: Any) -> Any:
    return {"pk": {"S": pk}, "sk": {"S": sk}, **attributes}


def test_the_key_of_a_mark_is_that_of_the_documented_example() -> None:
    assert key_of(LANE) == Key("mark#eu-west-1#6", "0#stock:85123A")


def test_lanes_spread_over_all_buckets_of_their_region() -> None:
    pks = {key_of(Lane(A, 0, f"counter-{n}")).pk for n in range(200)}
    assert pks == set(buckets_of(A))
    assert len(pks) == BUCKETS


@pytest.mark.parametrize("counter", ["a", "#", "a#0#b", "x" * 256])
def test_the_lane_of_a_mark_comes_back(counter: str) -> None:
    lane = Lane(A, 12, counter)
    key = key_of(lane)
    assert mark_of(item(key.pk, key.sk)) == Mark(lane)


@pytest.mark.parametrize("sk", ["", "0", "a", "x#a", "01#a", "-1#a", "0#", "0#a b", "1234567#a"])
def test_a_key_that_names_no_lane_is_no_mark(sk: str) -> None:
    assert mark_of(item(sk=sk)) is None


@pytest.mark.parametrize("wrong", [{"S": "5"}, {"N": "x"}, {"N": "-5"}, {"N": "1.5"}, {"N": "9" * 38}, {}])
def test_a_mark_that_nobody_can_read_is_due_now(wrong: Any) -> None:
    mark = mark_of(item(due_ms=wrong, next_ms=wrong, touched_ms=wrong, held_ms=wrong, late_ms=wrong))
    assert mark == Mark(Lane(A, 0, "a"))
    assert mark.is_due(0)


def test_a_mark_that_nobody_can_read_is_put_right_by_a_visit(marked: Marked) -> None:
    key = key_of(LANE)
    marked.table.answer(Put(item(key.pk, key.sk, due_ms={"S": "soon"}, touched_ms={"S": "then"})))
    for request in after(Mark(LANE), began_ms=50_000, again_ms=65_000, next_ms=None, rests=marked.do):
        marked.do(request)
    marked.do(Touch(LANE, 60_000, 70_000))
    assert marked.mark() == Mark(LANE, due_ms=65_000, touched_ms=60_000)


def after(seen: Mark | None, *, rests: Any, **given: Any) -> list[Any]:
    """What is asked of the marks after a visit; `rests` answers a Rest, which is then not among it if it was True."""
    program = after_visit(LANE, seen, **given)
    request = next(program)
    if not isinstance(request, Rest):
        return [request]
    try:
        return [program.send(rests(request))]
    except StopIteration:
        return [request]


@pytest.mark.parametrize("touched_ms", [None, 50_000 - QUIET_MS - 1])
def test_a_quiet_mark_rests_unless_it_was_touched_meanwhile(touched_ms: int | None) -> None:
    seen = Mark(LANE, touched_ms=touched_ms)
    given: dict[str, Any] = {"began_ms": 50_000, "again_ms": 65_000, "next_ms": 700_000}
    assert after(seen, rests=lambda _: True, **given) == [Rest(LANE, touched_ms, 700_000)]
    assert after(seen, rests=lambda _: False, **given) == [Again(LANE, 65_000, 700_000)]
    assert after(None, rests=lambda _: True, **given) == [Rest(LANE, None, 700_000)]


@pytest.mark.parametrize("touched_ms", [50_000 - QUIET_MS, 50_000, 60_000])
def test_a_mark_that_was_touched_lately_is_due_again(touched_ms: int) -> None:
    seen = Mark(LANE, touched_ms=touched_ms)
    assert after(seen, rests=None, began_ms=50_000, again_ms=65_000, next_ms=None) == [Again(LANE, 65_000, None)]


def test_a_process_may_spare_a_touch_only_well_within_the_quiet_time() -> None:
    assert TOUCH_EVERY_MS + 10_000 <= QUIET_MS < LEASE_MS
