"""Names, changes, keys and times: all that is valid counts once, all else is refused by name and nothing is written."""

import hashlib
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ledger import Change, Ledger, Settings, tokens
from ledger.checks import to_datetime
from ledger.errors import InvalidChange, InvalidCounter, InvalidInput, InvalidKey, InvalidTime
from ledger.memory import MemoryTable
from ledger.ranges import CHANGE_MAX
from reader import Reader
from tests.strategies import (
    FOLDED_HOUR,
    MISSING_HOUR,
    Name,
    Number,
    Overdrawn,
    Unlike,
    changes,
    counters,
    datetimes,
    keys,
    made_tokens,
    zones,
)

SETTINGS = Settings(table="counters", region="eu-west-1")
NOW_MS = 253_370_764_800_000  # the year 9999, so that nearly every time that hypothesis draws is past
AHEAD_MS = 300_000
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def ledger(table: MemoryTable) -> Ledger:
    return Ledger(SETTINGS, table=table, clock=lambda: NOW_MS)


def ms(at: datetime) -> int:
    """Milliseconds since 1970, rounded down, by another way than the library's."""
    offset = at.utcoffset()
    assert offset is not None
    naive = at.replace(tzinfo=None)
    microseconds = (
        (naive.toordinal() - 719_163) * 86_400 + naive.hour * 3600 + naive.minute * 60 + naive.second
    ) * 10**6
    return (microseconds + naive.microsecond - offset // timedelta(microseconds=1)) // 1_000


def token_of(counter: str, key: str, at_ms: int) -> str:
    """As the data model describes it, digit by digit."""
    digest = hashlib.sha256(f"{len(counter)}:".encode() + counter.encode() + key.encode()).digest()
    number = (at_ms << 80) | int.from_bytes(digest[:10], "big")
    return "".join(CROCKFORD[number >> 5 * place & 31] for place in reversed(range(26)))


@given(counters, changes, keys, datetimes, zones)
def test_whatever_is_valid_counts_once(counter: str, change: int, key: str, at: datetime, zone: Any) -> None:
    at_ms = ms(at)
    assume(0 <= at_ms <= NOW_MS + AHEAD_MS)
    table = MemoryTable()
    first = ledger(table).add(counter, change, idempotency_key=key, at=at)
    assert first.delta.token == token_of(counter, key, at_ms)
    assert ms(first.delta.at) == at_ms
    there = to_datetime(at_ms).astimezone(zone)
    again = ledger(table).add(counter, change, idempotency_key=key, at=there)
    (batched,) = ledger(table).add_many([Change(counter, change, key, at)])
    assert [first.outcome, again.outcome, getattr(batched, "outcome", batched)] == ["recorded", "replayed", "replayed"]
    assert list(table.items.values()) == [
        {"pk": {"S": f"delta#eu-west-1#0#{counter}"}, "sk": {"S": first.delta.token}, "change": {"N": str(change)}}
    ]
    reader = Reader(SETTINGS, table=table, clock=lambda: NOW_MS)
    assert (reader.read(counter).value, reader.read(counter).count) == (change, 1)
    assert [(entry.change, ms(entry.at)) for entry in reader.history(counter)] == [(change, at_ms)]


any_text = st.text(st.characters(codec=None, exclude_categories=()))
INVALID: dict[str, tuple[st.SearchStrategy[Any], type[InvalidInput]]] = {
    "counter": (
        any_text.filter(lambda text: not (text.isascii() and text and all(33 <= ord(c) <= 126 for c in text)))
        | st.builds(lambda text, odd, end: text + odd + end, counters, st.sampled_from(" \n\0\x7fé"), counters)
        | st.integers(257, 10_000).map(lambda size: "x" * size)
        | st.one_of(st.none(), st.binary(), st.integers()),
        InvalidCounter,
    ),
    "change": (
        st.integers(min_value=CHANGE_MAX + 1)
        | st.integers(max_value=-CHANGE_MAX - 1)
        | st.integers(39, 10_000).map(lambda digits: -(10**digits))
        | st.one_of(st.booleans(), st.floats(), st.none(), *map(changes.map, (Decimal, str, float))),
        InvalidChange,
    ),
    "idempotency_key": (
        st.just("")
        | st.builds(lambda key, odd: key + odd, keys, st.characters(categories=["Cs"]))
        | st.integers(1_025, 5_000).map(lambda size: "x" * size)
        | keys.map(lambda key: key + "é" * 512 + "x")
        | st.binary()
        | st.integers(),
        InvalidKey,
    ),
    "at": (
        st.datetimes()
        | datetimes.filter(lambda at: not 0 <= ms(at) <= NOW_MS + AHEAD_MS)
        | st.integers(1, 10**9).map(lambda late: to_datetime(NOW_MS + AHEAD_MS + late))
        | st.integers(1, 10**9).map(lambda early: to_datetime(-early))
        | st.dates()
        | st.floats()
        | st.datetimes().map(datetime.isoformat),
        InvalidTime,
    ),
}


@pytest.mark.parametrize("wrong", INVALID)
@given(data=st.data())
def test_whatever_is_not_is_refused_by_name_and_nothing_is_written(wrong: str, data: st.DataObject) -> None:
    strategy, error = INVALID[wrong]
    call: dict[str, Any] = {"counter": "c", "change": 1, "idempotency_key": "k", "at": to_datetime(NOW_MS)}
    call[wrong] = data.draw(strategy, label=wrong)
    table = MemoryTable()
    with pytest.raises(error, match="Nothing was written") as raised:
        ledger(table).add(**call)
    (value,) = ledger(table).add_many([Change(**call)])
    assert (type(value), str(value)) == (type(raised.value), str(raised.value))
    assert len(str(value).encode()) < 400
    assert table.items == {}


@given(st.integers(0, NOW_MS), st.integers(0, 999), st.integers(0, 999))
def test_two_times_are_one_in_the_same_millisecond_and_two_in_the_next(at_ms: int, one: int, other: int) -> None:
    at, micro = to_datetime(at_ms), timedelta(microseconds=1)
    prepared = [
        ledger(MemoryTable()).prepare("c", 1, idempotency_key="k", at=each).token
        for each in (at + one * micro, at + other * micro, at + (1_000 + other) * micro)
    ]
    assert prepared[0] == prepared[1] < prepared[2]


def test_an_hour_that_a_clock_shows_twice_is_two_times_and_one_that_none_shows_is_what_its_zone_says() -> None:
    table = MemoryTable()
    for hour in (FOLDED_HOUR, FOLDED_HOUR.replace(fold=1)):
        assert ledger(table).add("c", 1, idempotency_key="k", at=hour).outcome == "recorded"
    first, second = sorted(tokens.time_ms(key.sk) for key in table.items)
    assert second - first == 3_600_000
    for hour in (MISSING_HOUR, MISSING_HOUR.replace(fold=1)):
        assert tokens.time_ms(ledger(table).prepare("c", 1, idempotency_key="k", at=hour).token) == ms(hour)


@pytest.mark.parametrize(
    ("change", "counted"), [(Number.ONE, 1), (Overdrawn(5), 5), (Overdrawn(CHANGE_MAX), CHANGE_MAX)]
)
def test_an_int_of_another_class_counts_as_the_number_it_holds(change: int, counted: int) -> None:
    table = MemoryTable()
    assert type(ledger(table).add("c", change).delta.change) is int
    assert Reader(SETTINGS, table=table).value("c") == counted
    with pytest.raises(InvalidChange, match="67 bits"):
        ledger(table).add("c", Overdrawn(10**20))


@pytest.mark.parametrize("counter", [Name.COUNTER, Unlike("c")])
def test_a_text_of_another_class_is_the_counter_of_its_letters(counter: str) -> None:
    table = MemoryTable()
    ledger(table).add(counter, 4)
    reader = Reader(SETTINGS, table=table)
    assert reader.value(counter) == reader.read(counter).value == reader.values([counter])["c"] == 4
    assert [entry.change for entry in reader.history(counter)] == [4]


spellings = st.text(CROCKFORD, min_size=25, max_size=25).flatmap(
    lambda end: st.sampled_from("01234567").map(end.__add__)
)


@given(made_tokens | spellings | st.text() | st.text(CROCKFORD + "ilouILOU8", min_size=26, max_size=26))
def test_a_token_is_what_its_bytes_spell_and_nothing_else(text: str) -> None:
    canonical = len(text) == 26 and set(text) <= set(CROCKFORD) and text[0] in "01234567"
    assert tokens.is_token(text) == canonical
    if canonical:
        number = sum(CROCKFORD.index(letter) << 5 * place for place, letter in enumerate(reversed(text)))
        assert tokens.to_bytes(text) == number.to_bytes(16, "big")
        assert tokens.from_bytes(tokens.to_bytes(text)) == text
        assert tokens.time_ms(text) == number >> 80
