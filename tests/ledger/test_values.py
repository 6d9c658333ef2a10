"""Values that exist are valid."""

from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from typing import Any

import pytest

from ledger import tokens
from ledger.checks import CHANGE_MAX, check_change, check_counter, to_datetime, to_ms
from ledger.errors import InvalidChange, InvalidCounter, InvalidInput
from ledger.values import Checkpoint, CleanNote, Delta, Lane, Segment

LANE = Lane("eu-west-1", 0, "stock:85123A")
A, B, C = (tokens.make(1_000 + n, bytes(10)) for n in range(3))


@pytest.mark.parametrize("lane", [LANE, Lane("eu-west-1", 0, "a#0#b"), Lane("us-east-1", 999_999, "#")])
def test_the_text_of_a_lane_names_it(lane: Lane) -> None:
    assert Lane.parse(str(lane)) == lane


@pytest.mark.parametrize(
    "text", ["", "eu-west-1", "eu-west-1#0", "eu-west-1#0#", "eu-west-1#01#a", "eu-west-1##a", "#0#a", "a b#0#c", None]
)
def test_another_text_is_no_lane(text: object) -> None:
    with pytest.raises(InvalidInput):
        Lane.parse(text)


@pytest.mark.parametrize("name", ["a", "a" * 256, "a#b/c%d", "!~", "delta#eu-west-1#0#x", "checkpoint", "0"])
def test_printable_ascii_without_spaces_is_a_counter_name(name: str) -> None:
    assert check_counter(name) == name


@pytest.mark.parametrize(
    "name", ["", "a" * 257, "a b", " ", "a\n", "\0", "a\x7f", "é", "stock:\u0661", "\ud800", b"a", None, 5, ["a"]]
)
def test_everything_else_is_not_a_counter_name(name: Any) -> None:
    with pytest.raises(InvalidCounter, match="Nothing was written") as raised:
        check_counter(name)
    str(raised.value).encode()  # a message can always be written to a log


def test_a_message_shows_the_name_that_is_refused() -> None:
    with pytest.raises(InvalidCounter, match=r"not 'a b' \(3 characters\)"):
        check_counter("a b")


def test_a_message_about_a_long_name_is_short() -> None:
    with pytest.raises(InvalidCounter) as raised:
        check_counter("x" * 100_000)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("change", [0, 1, -1, CHANGE_MAX, -CHANGE_MAX])
def test_an_int_of_magnitude_up_to_ten_to_the_18th_is_a_change(change: int) -> None:
    assert check_change(change) == change


@pytest.mark.parametrize("change", [True, 1.0, float("nan"), "1", None, b"1", CHANGE_MAX + 1, -CHANGE_MAX - 1, 10**38])
def test_everything_else_is_not_a_change(change: Any) -> None:
    with pytest.raises(InvalidChange, match="Nothing was written"):
        check_change(change)


def test_a_change_too_large_to_print_is_refused_with_a_short_message() -> None:
    with pytest.raises(InvalidChange) as raised:
        check_change(10**10_000)
    assert len(str(raised.value)) < 200


def test_an_enum_of_ints_counts_as_its_number() -> None:
    class Move(int, Enum):
        SOLD = -6

    change: Any = Delta(LANE, A, Move.SOLD).change
    assert type(change) is int
    assert str(change) == "-6"


def test_an_enum_of_texts_counts_under_its_text() -> None:
    class Counter(str, Enum):  # noqa: UP042 -- the older spelling, whose str() is not its text
        STOCK = "stock:85123A"

    assert str(Lane("eu-west-1", 0, Counter.STOCK)) == str(LANE)


@pytest.mark.parametrize(
    ("region", "shard"),
    [("", 0), ("EU", 0), ("a#b", 0), ("a" * 33, 0), (None, 0), ("eu", -1), ("eu", True), ("eu", "0")],
)
def test_a_lane_has_a_region_and_a_shard(region: Any, shard: Any) -> None:
    with pytest.raises(InvalidInput):
        Lane(region, shard, "c")


def test_a_lane_has_a_counter() -> None:
    with pytest.raises(InvalidCounter):
        Lane("eu-west-1", 0, "a b")


@pytest.mark.parametrize("token", ["", A.lower(), A + "0", None, A.encode()])
def test_a_delta_has_a_token(token: Any) -> None:
    with pytest.raises(InvalidInput):
        Delta(LANE, token, 1)


def test_a_delta_has_a_change() -> None:
    with pytest.raises(InvalidChange):
        Delta(LANE, A, True)


def test_a_delta_tells_when_its_change_was_asked_for() -> None:
    assert Delta(LANE, A, 1).at == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)


def test_times_are_milliseconds_since_1970_rounded_down() -> None:
    at = datetime(2010, 12, 1, 8, 26, 0, 999_999, tzinfo=UTC)
    assert to_ms(at) == 1291191960999
    assert to_datetime(to_ms(at)) == at.replace(microsecond=999_000)
    assert to_ms(at.astimezone(timezone(timedelta(hours=-7)))) == 1291191960999
    assert to_ms(datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=UTC)) == -1


def test_a_time_that_no_datetime_holds_is_told_as_the_nearest_one() -> None:
    assert to_datetime(tokens.TIME_MS_MAX).year == 9999
    assert to_datetime(-tokens.TIME_MS_MAX).year == 1


def test_a_segment_holds_its_deltas_in_24_bytes_each() -> None:
    segment = Segment.of(LANE, B, 1, [Delta(LANE, A, -CHANGE_MAX), Delta(LANE, B, 7)])
    assert segment.entries.data == tokens.to_bytes(A) + (-CHANGE_MAX).to_bytes(8, "big", signed=True) + tokens.to_bytes(
        B
    ) + (7).to_bytes(8, "big")
    assert list(segment) == [(tokens.to_bytes(A), -CHANGE_MAX), (tokens.to_bytes(B), 7)]
    assert (len(segment), segment.entries.total) == (2, 7 - CHANGE_MAX)


def test_a_segment_may_be_empty() -> None:
    segment = Segment.of(LANE, B, 3, ())
    assert (len(segment), segment.entries.total, list(segment)) == (0, 0, [])


@pytest.mark.parametrize("listed", [[B, A], [A, A], [A, C]])
def test_a_segment_lists_each_token_once_in_order_and_none_above_hi(listed: list[str]) -> None:
    with pytest.raises(ValueError, match=r"order|above hi"):
        Segment.of(LANE, B, 1, [Delta(LANE, token, 1) for token in listed])


@pytest.mark.parametrize(
    "checkpoint",
    [
        {"watermark": "x"},
        {"last": ""},
        {"version": 0},
        {"count": -1},
        {"total": 1, "count": 0},
        {"total": -CHANGE_MAX - 1, "count": 1},
    ],
)
def test_a_checkpoint_that_cannot_be_is_refused(checkpoint: dict[str, Any]) -> None:
    whole: dict[str, Any] = {"total": 3, "count": 1, "watermark": B, "version": 1, "last": B, "committed_ms": 5}
    Checkpoint(LANE, **whole)
    with pytest.raises(ValueError, match=r"."):
        Checkpoint(LANE, **(whole | checkpoint))


def test_a_clean_note_has_a_version() -> None:
    with pytest.raises(ValueError, match="version"):
        CleanNote(LANE, 0, 5)
