"""Values that exist are valid."""

from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from typing import Any

import pytest

from ledger import tokens
from ledger.checks import check_change, check_counter, to_datetime, to_ms
from ledger.errors import InvalidChange, InvalidCounter, InvalidInput
from ledger.ranges import CHANGE_MAX
from ledger.values import Checkpoint, CleanNote, Delta, Lane, Segment

LANE = Lane("eu-west-1", 0, "stock:85123A")
A, B, C = (tokens.make(1_000 + n, bytes(10)) for n in range(3))


@pytest.mark.parametrize(
    "named", [("eu-west-1", 0, "c"), ("eu-west-1", 0, "a#0#b"), ("us-east-1", 999_999, "#", 999_999)]
)
def test_the_text_of_a_lane_names_it(named: tuple[Any, ...]) -> None:
    assert Lane.parse(str(Lane(*named))) == Lane(*named)


@pytest.mark.parametrize(
    "text", ["", "eu-west-1", "eu-west-1#0", "eu-west-1#0#", "eu-west-1#01#a", "eu-west-1##a", "#0#a", "a b#0#c", None]
)
def test_another_text_is_no_lane(text: object) -> None:
    with pytest.raises(InvalidInput):
        Lane.parse(text)


def test_a_message_shows_what_is_refused_and_is_short() -> None:
    with pytest.raises(InvalidCounter, match=r"not 'a b' \(3 characters\)"):
        check_counter("a b")
    with pytest.raises(InvalidCounter) as long:
        check_counter("x" * 100_000)
    assert len(str(long.value)) < 300
    with pytest.raises(InvalidChange) as large:
        check_change(10**10_000)
    assert len(str(large.value)) < 200


def test_an_enum_counts_as_its_number_or_under_its_text() -> None:
    class Move(int, Enum):
        SOLD = -6

    class Counter(str, Enum):  # noqa: UP042 -- the older spelling, whose str() is not its text
        STOCK = "stock:85123A"

    change: Any = Delta(LANE, A, Move.SOLD).change
    assert type(change) is int
    assert str(change) == "-6"
    assert str(Lane("eu-west-1", 0, Counter.STOCK)) == str(LANE)


@pytest.mark.parametrize(
    ("cls", "arguments", "error"),
    [
        *((Lane, (region, 0, "c"), InvalidInput) for region in ("", "EU", "a#b", "a" * 33, None)),
        *((Lane, ("eu", shard, "c"), InvalidInput) for shard in (-1, True, "0")),
        *((Lane, ("eu", 0, "c", shards), InvalidInput) for shards in (-1, True, "0", 1_000_000)),
        (Lane, ("eu-west-1", 0, "a b"), InvalidCounter),
        *((Delta, (LANE, token, 1), InvalidInput) for token in ("", A.lower(), A + "0", None, A.encode())),
        (Delta, (LANE, A, True), InvalidChange),
    ],
)
def test_a_lane_or_a_delta_that_cannot_be_is_refused(
    cls: type, arguments: tuple[Any, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        cls(*arguments)


def test_times_are_milliseconds_since_1970_rounded_down() -> None:
    at = datetime(2010, 12, 1, 8, 26, 0, 999_999, tzinfo=UTC)
    assert to_ms(at) == 1291191960999
    assert to_datetime(to_ms(at)) == at.replace(microsecond=999_000)
    assert to_ms(at.astimezone(timezone(timedelta(hours=-7)))) == 1291191960999
    assert to_ms(datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=UTC)) == -1
    assert Delta(LANE, A, 1).at == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert to_datetime(tokens.TIME_MS_MAX).year == 9999  # the nearest one that a datetime holds
    assert to_datetime(-tokens.TIME_MS_MAX).year == 1


def test_a_segment_holds_its_deltas_in_24_bytes_each() -> None:
    segment = Segment.of(LANE, B, 1, [Delta(LANE, A, -CHANGE_MAX), Delta(LANE, B, 7)])
    changes = [change.to_bytes(8, "big", signed=True) for change in (-CHANGE_MAX, 7)]
    assert segment.entries.data == tokens.to_bytes(A) + changes[0] + tokens.to_bytes(B) + changes[1]
    assert list(segment) == [(tokens.to_bytes(A), -CHANGE_MAX), (tokens.to_bytes(B), 7)]
    assert (len(segment), segment.entries.total) == (2, 7 - CHANGE_MAX)
    empty = Segment.of(LANE, B, 3, ())
    assert (len(empty), empty.entries.total, list(empty)) == (0, 0, [])


@pytest.mark.parametrize("listed", [[B, A], [A, A], [A, C]])
def test_a_segment_lists_each_token_once_in_order_and_none_above_hi(listed: list[str]) -> None:
    with pytest.raises(ValueError, match=r"order|above hi"):
        Segment.of(LANE, B, 1, [Delta(LANE, token, 1) for token in listed])


@pytest.mark.parametrize(
    "checkpoint",
    [
        *({"watermark": "x"}, {"last": ""}, {"version": 0}, {"count": -1}),
        *({"total": 1, "count": 0}, {"total": -CHANGE_MAX - 1, "count": 1}),
    ],
)
def test_a_checkpoint_or_a_note_that_cannot_be_is_refused(checkpoint: dict[str, Any]) -> None:
    whole: dict[str, Any] = {"total": 3, "count": 1, "watermark": B, "version": 1, "last": B, "committed_ms": 5}
    Checkpoint(LANE, **whole)
    with pytest.raises(ValueError, match=r"."):
        Checkpoint(LANE, **(whole | checkpoint))
    with pytest.raises(ValueError, match="version"):
        CleanNote(LANE, 0, 5)
