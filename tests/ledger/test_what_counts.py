"""Names, changes, keys and times: all that is valid counts once, all else is refused by name and nothing is written."""

import hashlib
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ledger import Change, tokens
from ledger.checks import to_datetime
from ledger.errors import InvalidChange, InvalidCounter, InvalidInput, InvalidKey, InvalidTime
from ledger.ranges import CHANGE_MAX
from tests.strategies import FOLDED_HOUR, MISSING_HOUR, changes, counters, datetimes, keys, zones
from tests.world import A, World

NOW_MS = 253_370_764_800_000  # the year 9999, so that nearly every time that hypothesis draws is past
AHEAD_MS = 300_000
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def alone() -> World:
    """One Region in the year 9999."""
    return World((A,), now_ms=NOW_MS)


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
    world = alone()
    first = world.ledger().add(counter, change, idempotency_key=key, at=at)
    assert first.delta.token == token_of(counter, key, at_ms)
    assert ms(first.delta.at) == at_ms
    there = to_datetime(at_ms).astimezone(zone)
    again = world.ledger().add(counter, change, idempotency_key=key, at=there)
    (batched,) = world.ledger().add_many([Change(counter, change, key, at)])
    assert [first.outcome, again.outcome, getattr(batched, "outcome", batched)] == ["recorded", "replayed", "replayed"]
    assert list(world.home.items.values()) == [
        {"pk": {"S": f"delta#eu-west-1#0#{counter}"}, "sk": {"S": first.delta.token}, "change": {"N": str(change)}}
    ]
    reader = world.reader()
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
    world = alone()
    with pytest.raises(error, match="Nothing was written") as raised:
        world.ledger().add(**call)
    (value,) = world.ledger().add_many([Change(**call)])
    assert (type(value), str(value)) == (type(raised.value), str(raised.value))
    assert len(str(value).encode()) < 400
    assert world.home.items == {}


def test_an_hour_that_a_clock_shows_twice_is_two_times_and_one_that_none_shows_is_what_its_zone_says() -> None:
    world = alone()
    for hour in (FOLDED_HOUR, FOLDED_HOUR.replace(fold=1)):
        assert world.ledger().add("c", 1, idempotency_key="k", at=hour).outcome == "recorded"
    first, second = sorted(tokens.time_ms(key.sk) for key in world.home.items)
    assert second - first == 3_600_000
    for hour in (MISSING_HOUR, MISSING_HOUR.replace(fold=1)):
        assert tokens.time_ms(world.ledger().prepare("c", 1, idempotency_key="k", at=hour).token) == ms(hour)
