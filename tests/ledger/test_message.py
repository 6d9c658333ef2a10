"""The message of a change: what is read, what is refused, and that nothing is lost on the way."""

import json
import pickle
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.checks import to_ms
from ledger.errors import InvalidInput, InvalidMessage, InvalidTime
from ledger.message import dumps, dumps_many, loads, loads_many, parsed, time_of, time_text
from ledger.ranges import CHANGE_MAX
from ledger.values import Change

AT = datetime(2010, 12, 1, 8, 26, tzinfo=UTC)
SALE = Change("stock:85123A", -6, "536365/1", AT)
TEXT = '{"counter":"stock:85123A","change":-6,"idempotency_key":"536365/1","at":"2010-12-01T08:26:00.000Z"}'


def text(**changed: Any) -> str:
    said = json.loads(TEXT) | changed
    return json.dumps({name: value for name, value in said.items() if value is not ...})


def test_a_message_is_what_the_page_on_producers_shows() -> None:
    assert dumps(SALE) == TEXT
    assert loads(TEXT) == loads(text(region=None)) == SALE
    assert '"idempotency_key":"\u00e9t\u00e9"' in dumps(Change("c", 1, "\u00e9t\u00e9", AT))  # as it is written
    assert loads(text(region="us-east-1")).region == "us-east-1"  # of a fail-over
    assert '"region":"us-east-1"' in dumps(Change("c", 1, "k", AT, "us-east-1"))
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert loads(dumps(Change("c", 1, "k", epoch))).at == epoch


@pytest.mark.parametrize("said", ["NaN", "-Infinity", '{"change": Infinity}'])
def test_what_is_no_number_in_json_is_named(said: str) -> None:
    with pytest.raises(InvalidMessage, match="is not a number in JSON"):
        parsed(said)


changes = st.builds(
    Change,
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=256),
    st.integers(-CHANGE_MAX, CHANGE_MAX),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=256),
    st.datetimes(datetime(1970, 1, 2), datetime(9999, 12, 30), timezones=st.timezones()),
    st.sampled_from([None, "eu-west-1"]),
)


@given(changes)
def test_every_change_comes_back_the_same_to_the_millisecond(change: Change) -> None:
    back = loads(dumps(change))
    assert back.at is not None
    assert change.at is not None
    assert to_ms(back.at) == to_ms(change.at)
    assert replace(back, at=change.at) == change


@pytest.mark.parametrize(
    ("body", "field"),
    [
        *((body, None) for body in ("", "{", "[]", "null", '"text"', "NaN", "1" * 5_000, "[" * 100_000)),
        (TEXT.replace('"change":-6', '"change":-6,"change":-6'), None),
        (text(note="x"), "note"),
        *((text(counter=wrong), "counter") for wrong in (..., 7, "", "two words", "b\u00e9", "x" * 257)),
        *((text(change=wrong), "change") for wrong in (..., "-6", -6.0, True, None, 10**18 + 1, -(10**37))),
        *((text(idempotency_key=key), "idempotency_key") for key in (..., None, "", "x" * 1_025, "\ud800")),
        *((text(at=wrong), "at") for wrong in (..., None, 1_291_192_000, "2010-12-01", "2010-12-01T08:26:00")),
        *((text(at=wrong), "at") for wrong in ("2010-02-31T08:26:00Z", "1969-12-31T23:59:59Z")),
        *((text(region=wrong), "region") for wrong in ("Mars!", 1)),
    ],
)
def test_a_message_that_is_not_as_described_is_refused_with_its_field(body: str, field: str | None) -> None:
    with pytest.raises(InvalidMessage, match="Nothing was written") as refused:
        loads(body)
    assert refused.value.field == field
    assert pickle.loads(pickle.dumps(refused.value)).field == field


@pytest.mark.parametrize(
    "change",
    [
        *(Change("c", 1), Change("c", 1, "k"), Change("c", 1, None, AT), Change("c", 1, "k", datetime(2010, 12, 1))),
        Change("c", 1, "k", datetime.max.replace(tzinfo=timezone(-timedelta(hours=14)))),  # the year 10000
        None,
    ],
)
def test_a_change_without_its_key_and_its_instant_makes_no_message(change: Any) -> None:
    with pytest.raises(InvalidMessage):
        dumps(change)
    with pytest.raises(InvalidMessage, match=r"^at: A change's time is an aware datetime, not None"):
        dumps(Change("c", 1, "k"))


@given(st.lists(changes, min_size=1, max_size=5))
def test_one_reader_reads_the_message_of_one_and_of_many(those: list[Change]) -> None:
    back = loads_many(dumps_many(those))
    assert back == [loads(dumps(change)) for change in those]
    assert loads_many(dumps(those[0])) == back[:1]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        *(("{}", "counter"), ("[]", None), ("7", None), (f"[{TEXT}]", None)),
        *((f'{{"changes":{wrong}}}', "changes") for wrong in ("[]", "{}", "null", '"x"', TEXT)),
        (f'{{"changes":[{TEXT}],"changes":[{TEXT}]}}', None),
        (f'{{"changes":[{TEXT}],"region":"eu-west-1"}}', "region"),
        (f'{{"changes":[{TEXT},[]]}}', "changes[1]"),
        (f'{{"changes":[{TEXT},{{"changes":[{TEXT}]}}]}}', "changes[1].changes"),
        (f'{{"changes":[{TEXT},{TEXT},{text(at=...)}]}}', "changes[2].at"),
        (f'{{"changes":[{text(at="now")},{text(change=1.5)}]}}', "changes[0].at"),
        (f'{{"changes":[{TEXT},{text(change=1.5)}]}}', "changes[1].change"),
    ],
)
def test_a_message_of_many_is_refused_whole_with_the_place_of_what_is_wrong(body: str, field: str | None) -> None:
    with pytest.raises(InvalidMessage, match="Nothing was written") as refused:
        loads_many(body)
    assert refused.value.field == field
    assert field is None or field.split(".")[0] in str(refused.value)


def test_changes_that_make_no_message_are_named_by_their_index_and_none_make_none() -> None:
    for wrong, field in (([SALE, Change("c", 1, None, AT)], "changes[1].idempotency_key"), ([], "changes")):
        with pytest.raises(InvalidMessage) as refused:
            dumps_many(wrong)
        assert refused.value.field == field
    with pytest.raises(InvalidMessage) as refused:
        loads(dumps_many([SALE, SALE]))
    assert refused.value.field == "changes"
    with pytest.raises(InvalidInput, match=r"^dumps_many takes several"):
        dumps_many(SALE)  # type: ignore[arg-type]


def test_no_message_holds_a_character_that_sqs_refuses() -> None:
    change = Change("c", 1, "\ufffe\uffff\x00", AT)
    assert not {"\ufffe", "\uffff", "\x00"} & set(dumps(change))
    assert loads(dumps(change)) == change


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("2010-12-01T08:26:00Z", AT),
        ("2010-12-01t08:26:00z", AT),
        ("2010-12-01T09:26:00+01:00", AT),
        ("2010-12-01T08:26:00.123456789Z", AT.replace(microsecond=123456)),
    ],
)
def test_a_time_is_an_instant_whatever_its_offset(said: str, meant: datetime) -> None:
    assert time_of(said) == meant


def test_a_time_is_written_in_utc_to_the_millisecond_and_no_arithmetic_on_the_first_one_fails() -> None:
    there = AT.astimezone(timezone(timedelta(hours=9))) + timedelta(microseconds=1999)
    assert time_text(there) == "2010-12-01T08:26:00.001Z"
    assert to_ms(time_of("0001-01-01T00:00:00+23:59")) < 0  # before 1970, which the ledger says
    with pytest.raises(InvalidTime):
        time_of("2010-12-01T24:00:00Z")


def test_the_library_imports_neither_the_message_nor_the_queue() -> None:
    code = "import sys, ledger; print({'ledger.queue', 'ledger.message'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
