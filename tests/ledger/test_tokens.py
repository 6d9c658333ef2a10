"""Tokens: their order, their purity, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import tokens

SPELLED = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
times = st.integers(0, tokens.TIME_MS_MAX)
random_bytes = st.binary(min_size=tokens.RANDOM_BYTES, max_size=tokens.RANDOM_BYTES)
made = st.builds(tokens.make, times, random_bytes)
counters = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=256)
keys = st.text(st.characters(codec="utf-8"), min_size=1)


@given(times, random_bytes)
def test_a_token_holds_its_time_and_its_randomness(time_ms: int, randomness: bytes) -> None:
    token = tokens.make(time_ms, randomness)
    assert tokens.is_token(token)
    assert tokens.time_ms(token) == time_ms
    assert tokens.to_bytes(token) == time_ms.to_bytes(6, "big") + randomness
    assert tokens.from_bytes(tokens.to_bytes(token)) == token


@given(made, made)
def test_the_order_of_the_text_is_the_order_of_the_bytes(a: str, b: str) -> None:
    assert (a < b) == (tokens.to_bytes(a) < tokens.to_bytes(b))
    assert (a == b) == (tokens.to_bytes(a) == tokens.to_bytes(b))


def test_the_example_of_the_specification_is_read() -> None:
    assert tokens.is_token(SPELLED)
    assert tokens.time_ms(SPELLED) == 1469922850259
    assert tokens.make(0, bytes(10)) == "0" * 26
    assert tokens.make(tokens.TIME_MS_MAX, b"\xff" * 10) == "7" + "Z" * 25


@given(counters, keys, times)
def test_a_keyed_token_is_pure_and_has_its_time(counter: str, key: str, time_ms: int) -> None:
    assert tokens.keyed(counter, key, time_ms) == tokens.keyed(counter, key, time_ms)
    assert tokens.time_ms(tokens.keyed(counter, key, time_ms)) == time_ms


@given(counters, keys, counters, keys)
def test_another_counter_or_another_key_is_another_token(c1: str, k1: str, c2: str, k2: str) -> None:
    assert (tokens.keyed(c1, k1, 5) == tokens.keyed(c2, k2, 5)) == ((c1, k1) == (c2, k2))


def test_a_keyed_token_is_the_same_for_ever_and_the_border_between_counter_and_key_matters() -> None:
    """Written down: whoever changes the derivation makes every retry of an older change count twice."""
    assert tokens.keyed("stock:85123A", "536365/1", 1291191960000) == "015JGGKGE064BG4X58772SZHBM"
    assert tokens.keyed("ab", "c", 5) != tokens.keyed("a", "bc", 5)
    assert tokens.keyed("1", "1:x", 5) != tokens.keyed("11", ":x", 5)
    assert tokens.keyed("1:a", "b", 5) != tokens.keyed("1", ":ab", 5)


@pytest.mark.parametrize(
    "text",
    [
        *("", SPELLED[:-1], SPELLED + "V", SPELLED + "\n"),
        SPELLED.lower(),  # sorts elsewhere
        "8" + SPELLED[1:],  # more than 128 bits
        *(SPELLED[:-1] + other for other in "ILOU"),  # not in the alphabet
        SPELLED[:-1] + "٣",  # a digit, not ASCII
    ],
)
def test_what_is_not_spelled_canonically_is_no_token(text: str) -> None:
    assert not tokens.is_token(text)


@given(times, random_bytes)
def test_the_last_token_of_a_millisecond_lies_at_or_above_all_of_it_and_below_the_next(
    time_ms: int, randomness: bytes
) -> None:
    last = tokens.last_of(time_ms)
    assert tokens.make(time_ms, randomness) <= last
    assert time_ms == tokens.TIME_MS_MAX or last < tokens.make(time_ms + 1, bytes(10))
    assert tokens.first_of(time_ms) == tokens.to_bytes(tokens.make(time_ms, bytes(10)))
    assert tokens.first_of(-time_ms) == bytes(16)


@given(times, random_bytes)
def test_the_token_before_is_the_next_lower_number(time_ms: int, randomness: bytes) -> None:
    number = int.from_bytes(time_ms.to_bytes(6, "big") + randomness, "big")
    before = tokens.before(tokens.make(time_ms, randomness))
    assert before == (tokens.from_bytes((number - 1).to_bytes(16, "big")) if number else None)
    assert tokens.before(tokens.make(0, bytes(10))) is None


@given(random_bytes, times, times, st.integers(1, 1_000))
def test_a_draw_depends_on_the_randomness_alone(randomness: bytes, t1: int, t2: int, sides: int) -> None:
    drawn = tokens.draw(tokens.make(t1, randomness), sides)
    assert drawn == tokens.draw(tokens.make(t2, randomness), sides)
    assert 0 <= drawn < sides


def test_a_draw_is_the_same_for_ever_and_reaches_every_side() -> None:
    """Written down: whoever changes it sends every retry of an older change to another lane."""
    assert tokens.draw(tokens.make(5, b"\x01" + bytes(8) + b"\x02"), 1_000) == (2**72 + 2) % 1_000
    drawn = [tokens.draw(tokens.keyed("c", str(n), 5), 4) for n in range(400)]
    assert all(70 < drawn.count(side) < 130 for side in range(4))
