"""The message of a change: what is read, what is refused, and that nothing is lost on the way."""

import copy
import json
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import Ledger, Settings
from ledger.client import preparing
from ledger.client.message import dumps, dumps_many, loads, loads_many, parsed, time_of, time_text
from ledger.core.checks import to_ms
from ledger.core.errors import InvalidInput, InvalidMessage, InvalidTime, LedgerError
from ledger.core.running import or_error
from ledger.core.values import Change, CheckedChange, Then
from ledger.memory import MemoryTable
from tests import strategies

AT = datetime(2010, 12, 1, 8, 26, tzinfo=UTC)
SALE = Change("stock:85123A", -6, "536365/1", AT)
TEXT = (
    '{"counter":"stock:85123A","change":-6,'
    '"idempotency_key":"536365/1","at":"2010-12-01T08:26:00.000Z"}'
)

PAID = Change("wallet:ann", -2_550, "pay-17", AT, then=Then("wallet:bob", 2_550))
PAYS = (
    '{"counter":"wallet:ann","change":-2550,'
    '"idempotency_key":"pay-17","at":"2010-12-01T08:26:00.000Z",'
    '"then":{"counter":"wallet:bob","change":2550}}'
)
SPENT = Change("stock:85123A", -6, "536365/1", AT, partial=True)
SPENDS = f'{TEXT[:-1]},"partial":true}}'
of_change = (
    st.datetimes(datetime(1970, 1, 2), datetime(9999, 12, 30), timezones=st.timezones()),
    st.sampled_from([None, "eu-west-1"]),
)
plain = st.builds(Change, strategies.counters, strategies.changes, strategies.keys, *of_change)
amounts = st.integers(1, 10**18)
transfers = st.builds(
    lambda amount, key, at, region: Change(
        "wallet:ann", -amount, key, at, region, Then("wallet:bob", amount)
    ),
    *(amounts, st.text("k\u00e9", min_size=1, max_size=500), *of_change),
)
parts = st.builds(
    Change,
    strategies.counters,
    strategies.changes.filter(bool),
    strategies.keys,
    *of_change,
    partial=st.just(True),
)
changes = plain | transfers | parts


def text(**changed: Any) -> str:
    said = json.loads(TEXT) | changed
    return json.dumps({name: value for name, value in said.items() if value is not ...})


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"partial": 1}, "partial"),
        ({"partial": None}, "partial"),
        ({"partial": "true"}, "partial"),
        ({"partial": True, "change": 0}, "change"),
        ({"partial": True, "then": {"counter": "b", "change": 6}}, "partial"),
    ],
)
def test_a_message_of_a_part_says_true_of_one_change(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidMessage, match=f"^{field}: ") as caught:
        loads(text(**given))
    assert caught.value.field == field


def test_a_message_of_a_part_is_another_one() -> None:
    assert dumps(SPENT) == SPENDS
    assert loads(SPENDS) == SPENT != SALE
    assert loads(text(partial=False)) == SALE


def test_a_message_is_what_the_page_on_producers_shows() -> None:
    assert dumps(SALE) == TEXT
    assert loads(TEXT) == loads(text(region=None)) == SALE
    # as it is written
    assert '"idempotency_key":"\u00e9t\u00e9"' in dumps(Change("c", 1, "\u00e9t\u00e9", AT))
    assert loads(text(region="us-east-1")).region == "us-east-1"  # of a fail-over
    assert '"region":"us-east-1"' in dumps(Change("c", 1, "k", AT, "us-east-1"))
    odd = Change("c", 1, "\ufffe\uffff\x00", datetime(1970, 1, 1, tzinfo=UTC))
    assert loads(dumps(odd)) == odd
    assert not {"\ufffe", "\uffff", "\x00"} & set(dumps(odd))  # SQS refuses them


@given(st.lists(changes, min_size=1, max_size=5))
def test_a_change_comes_back_the_same_alone_and_among_many(
    those: list[Change],
) -> None:
    back = loads_many(dumps_many(those))
    for change, came in zip(those, back, strict=True):
        assert came == loads(dumps(change))
        assert change.at is not None
        assert came.at is not None
        assert to_ms(came.at) == to_ms(change.at)
        assert replace(came, at=change.at) == change
    assert loads_many(dumps(those[0])) == back[:1]


def test_a_change_that_was_read_is_the_one_that_was_sent() -> None:
    for sent in (SALE, PAID):
        read = loads(dumps(sent))
        assert isinstance(read, CheckedChange)
        assert (read == sent, sent == read, hash(read)) == (True, True, hash(sent))
        assert repr(read) == repr(sent)
        assert read != replace(sent, change=-7)
        assert read != dumps(sent)
    # what is made from it was not read, so that it is checked again
    wrong: Any = {"change": 1.5}
    for made in (
        copy.copy(read),
        copy.deepcopy(read),
        pickle.loads(pickle.dumps(read)),
        replace(read, **wrong),
        type(read)("two words", 1),
    ):
        assert type(made) is Change
    with pytest.raises(FrozenInstanceError):
        read.change = 2  # type: ignore[misc]


@given(st.lists(plain, min_size=1, max_size=5))
def test_a_change_that_was_read_is_prepared_as_any_other(sent: list[Change]) -> None:
    regions = ("eu-west-1", "eu-central-1")
    settings = Settings(table="counters", region="eu-central-1", regions=regions)
    ledger = Ledger(settings, table=MemoryTable(), clock=lambda: to_ms(AT))
    read = loads_many(dumps_many(sent))
    plain = [Change(*(getattr(one, field.name) for field in fields(one))) for one in read]
    for ours, theirs in zip(read, plain, strict=True):
        made, again = (or_error(preparing.prepare, ledger._rules, one) for one in (ours, theirs))
        assert (type(made), str(made)) == (type(again), str(again))
        assert isinstance(made, LedgerError) or made == again


def follows(then: Any, **changed: Any) -> str:
    return json.dumps(json.loads(PAYS) | {"then": then} | changed)


def test_a_transfer_is_a_change_and_what_follows_it() -> None:
    assert dumps(PAID) == PAYS
    assert loads(PAYS) == PAID
    assert loads(text(then=None)) == SALE


WRONG: list[tuple[str, str | None]] = [
    *((follows(then), "then") for then in ("wallet:bob", "")),
    *((follows(then), "then") for then in (7, True)),
    (follows({"counter": "wallet:bob"}), "then.change"),
    (follows({"change": 2_550}), "then.counter"),
    (follows({"counter": "wallet:bob", "change": 2_550, "at": "now"}), "then.at"),
    (follows({"counter": "two words", "change": 2_550}), "then.counter"),
    (follows({"counter": "wallet:ann", "change": 2_550}), "then.counter"),
    *(
        (follows({"counter": "b", "change": wrong}), "then.change")
        for wrong in (2_549, -2_550, 0, "2550", 2_550.0)
    ),
    *(
        (follows({"counter": "b", "change": -wrong}, change=wrong), "then.change")
        for wrong in (0, 5)
    ),
    (follows({"counter": "b", "change": 2_550}, idempotency_key="k" * 1_013), "idempotency_key"),
    *(
        (body, None)
        for body in ("", "{", "[]", "null", '"text"', "1" * 5_000, "[" * 100_000, f"[{TEXT}]", "7")
    ),
    *((body, None) for body in ("NaN", "-Infinity", '{"change": Infinity}')),
    (TEXT.replace('"change":-6', '"change":-6,"change":-6'), None),
    ("{}", "counter"),
    (text(note="x"), "note"),
    *(
        (text(counter=wrong), "counter")
        for wrong in (..., 7, "", "two words", "b\u00e9", "x" * 257)
    ),
    *(
        (text(change=wrong), "change")
        for wrong in (..., "-6", -6.0, True, None, 10**18 + 1, -(10**37))
    ),
    *(
        (text(idempotency_key=key), "idempotency_key")
        for key in (..., None, "", "x" * 1_025, "\ud800")
    ),
    *(
        (text(at=wrong), "at")
        for wrong in (..., None, 1_291_192_000, "2010-12-01", "2010-12-01T08:26:00")
    ),
    *((text(at=wrong), "at") for wrong in ("2010-02-31T08:26:00Z", "1969-12-31T23:59:59Z")),
    *((text(region=wrong), "region") for wrong in ("Mars!", 1)),
]
WRONG_MANY: list[tuple[str, str | None]] = [
    *((f'{{"changes":{wrong}}}', "changes") for wrong in ("[]", "{}", "null", '"x"', TEXT)),
    (f'{{"changes":[{TEXT}],"changes":[{TEXT}]}}', None),
    (f'{{"changes":[{TEXT}],"region":"eu-west-1"}}', "region"),
    (f'{{"changes":[{TEXT},[]]}}', "changes[1]"),
    (f'{{"changes":[{TEXT},{{"changes":[{TEXT}]}}]}}', "changes[1].changes"),
    (f'{{"changes":[{TEXT},{TEXT},{text(at=...)}]}}', "changes[2].at"),
    (f'{{"changes":[{text(at="now")},{text(change=1.5)}]}}', "changes[0].at"),
    (f'{{"changes":[{TEXT},{follows({})}]}}', "changes[1].then.counter"),
]


def test_a_bad_message_is_refused_whole_with_the_place() -> None:
    for load, wrong in ((loads, WRONG), (loads_many, [*WRONG, *WRONG_MANY])):
        for body, field in wrong:
            with pytest.raises(InvalidMessage, match="Nothing was written") as refused:
                load(body)
            assert (
                refused.value.field == pickle.loads(pickle.dumps(refused.value)).field == field
            ), body[:80]
            assert field is None or field.split(".")[0] in str(refused.value)
    with pytest.raises(InvalidMessage) as one_alone:
        loads(dumps_many([SALE, SALE]))
    assert one_alone.value.field == "changes"
    with pytest.raises(InvalidMessage, match="NaN is not a number in JSON"):
        parsed("NaN")


def test_a_change_without_key_and_instant_makes_no_message() -> None:
    # the year 10000
    late = Change("c", 1, "k", datetime.max.replace(tzinfo=timezone(-timedelta(hours=14))))
    keyless = Change("c", 1, None, AT)
    wrong: Any
    no_then: Any = Change("c", -1, "k", AT, then=("b", 1))  # type: ignore[arg-type]
    for wrong in (
        no_then,
        Change("c", 1),
        keyless,
        Change("c", 1, "k", datetime(2010, 12, 1)),
        late,
        None,
    ):
        with pytest.raises(InvalidMessage):
            dumps(wrong)
    with pytest.raises(
        InvalidMessage, match=r"^at: A change's time is an aware datetime, not None"
    ):
        dumps(Change("c", 1, "k"))
    for many, field in (([SALE, keyless], "changes[1].idempotency_key"), ([], "changes")):
        with pytest.raises(InvalidMessage) as refused:
            dumps_many(many)
        assert refused.value.field == field
    with pytest.raises(InvalidInput, match=r"^dumps_many takes several"):
        dumps_many(SALE)  # type: ignore[arg-type]


def test_a_time_is_written_in_utc_to_the_millisecond() -> None:
    for said in ("2010-12-01T08:26:00Z", "2010-12-01t08:26:00z", "2010-12-01T09:26:00+01:00"):
        assert time_of(said) == AT
    assert time_of("2010-12-01T08:26:00.123456789Z") == AT.replace(microsecond=123456)
    there = AT.astimezone(timezone(timedelta(hours=9))) + timedelta(microseconds=1999)
    assert time_text(there) == "2010-12-01T08:26:00.001Z"
    assert to_ms(time_of("0001-01-01T00:00:00+23:59")) < 0  # before 1970, which the ledger says
    with pytest.raises(InvalidTime):
        time_of("2010-12-01T24:00:00Z")
