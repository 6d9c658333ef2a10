"""How values stand in the table, and that nothing else is taken for one."""

import copy
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import items, tokens
from ledger.errors import DamagedItem, InvalidCounter
from ledger.requests import Item, Key
from ledger.values import CHANGE_MAX, Checkpoint, CleanNote, Delta, Lane, Segment

LANE = Lane("eu-west-1", 0, "stock:85123A")
A, B, C = (tokens.make(1_000 + n, bytes(10)) for n in range(3))
PK = "fold#eu-west-1#0#stock:85123A"

DELTA: Item = {"pk": {"S": "delta#eu-west-1#0#stock:85123A"}, "sk": {"S": A}, "change": {"N": "-6"}}
CHECKPOINT: Item = {
    "pk": {"S": PK},
    "sk": {"S": "checkpoint"},
    "total": {"N": "-2"},
    "count": {"N": "2"},
    "watermark": {"S": B},
    "version": {"N": "4"},
    "last": {"S": A},
    "committed_ms": {"N": "1291191960000"},
}
ENTRIES = tokens.to_bytes(A) + (-6).to_bytes(8, "big", signed=True) + tokens.to_bytes(B) + (4).to_bytes(8, "big")
SEGMENT: Item = {"pk": {"S": PK}, "sk": {"S": f"segment#{B}#0000000042"}, "entries": {"B": ENTRIES}}
NOTE: Item = {"pk": {"S": PK}, "sk": {"S": "clean"}, "version": {"N": "4"}, "noted_ms": {"N": "1291191960000"}}

Decode = Callable[[Lane, Item], Any]

counters = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=256)
lanes = st.builds(Lane, st.sampled_from(["eu-west-1", "us-east-1"]), st.integers(0, 999), counters)
made_tokens = st.builds(tokens.make, st.integers(0, tokens.TIME_MS_MAX), st.binary(min_size=10, max_size=10))
changes = st.integers(-CHANGE_MAX, CHANGE_MAX)
deltas = st.builds(Delta, lanes, made_tokens, changes)
versions = st.integers(1, 10**10 - 1)


# -- the format is public, and never changes -----------------------------------------------------------------------


def test_a_delta_is_written_as_the_data_model_says() -> None:
    assert items.delta_item(Delta(LANE, A, -6)) == DELTA
    assert items.delta_key(Delta(LANE, A, -6)) == Key("delta#eu-west-1#0#stock:85123A", A)


def test_a_checkpoint_is_written_as_the_data_model_says() -> None:
    assert items.checkpoint_item(Checkpoint(LANE, -2, 2, B, 4, A, 1291191960000)) == CHECKPOINT


def test_a_segment_is_written_as_the_data_model_says() -> None:
    assert items.segment_item(Segment.of(LANE, B, 42, [Delta(LANE, A, -6), Delta(LANE, B, 4)])) == SEGMENT


def test_a_clean_note_is_written_as_the_data_model_says() -> None:
    assert items.note_item(CleanNote(LANE, 4, 1291191960000)) == NOTE


# -- round trips ---------------------------------------------------------------------------------------------------


@given(deltas)
def test_a_delta_comes_back(delta: Delta) -> None:
    item = items.delta_item(delta)
    assert items.delta_of(delta.lane, item) == delta
    assert items.key_of(item) == items.delta_key(delta)


@given(lanes, st.integers(0, 10**9), st.data(), made_tokens, versions, made_tokens, st.integers(0, 2**48))
def test_a_checkpoint_comes_back(
    lane: Lane, count: int, data: st.DataObject, watermark: str, version: int, last: str, committed_ms: int
) -> None:
    total = data.draw(st.integers(-count * CHANGE_MAX, count * CHANGE_MAX))
    checkpoint = Checkpoint(lane, total, count, watermark, version, last, committed_ms)
    item = items.checkpoint_item(checkpoint)
    assert items.checkpoint_of(lane, item) == checkpoint
    assert items.key_of(item) == items.checkpoint_key(lane)
    assert items.version_of(item) == version


@given(lanes, versions, st.dictionaries(made_tokens, changes, max_size=20), made_tokens)
def test_a_segment_comes_back(lane: Lane, version: int, listed: dict[str, int], token: str) -> None:
    hi = max([*listed, token])
    segment = Segment.of(lane, hi, version, [Delta(lane, t, listed[t]) for t in sorted(listed)])
    item = items.segment_item(segment)
    assert items.segment_of(lane, item) == segment
    assert items.key_of(item) == items.segment_key(lane, hi, version)


@given(lanes, versions, st.integers(0, 2**48))
def test_a_clean_note_comes_back(lane: Lane, version: int, noted_ms: int) -> None:
    note = CleanNote(lane, version, noted_ms)
    item = items.note_item(note)
    assert items.note_of(lane, item) == note
    assert items.key_of(item) == items.note_key(lane)


# -- damage --------------------------------------------------------------------------------------------------------

KINDS: list[tuple[Decode, Mapping[str, Any], str]] = [
    (items.delta_of, DELTA, "change"),
    (items.checkpoint_of, CHECKPOINT, "total count watermark version last committed_ms"),
    (items.segment_of, SEGMENT, "entries"),
    (items.note_of, NOTE, "version noted_ms"),
]
INTEGERS = [(decode, item, name) for decode, item, names in KINDS for name in names.split() if "N" in item[name]]
ATTRIBUTES = [(decode, item, name) for decode, item, names in KINDS for name in names.split()]


def without(item: Mapping[str, Any], name: str) -> Item:
    return {key: value for key, value in item.items() if key != name}


def damage(decode: Decode, item: Item) -> DamagedItem:
    with pytest.raises(DamagedItem) as raised:
        decode(LANE, item)
    return raised.value


def assert_damaged(decode: Decode, item: Item) -> None:
    error = damage(decode, item)
    assert (error.pk, error.sk) == (item["pk"]["S"], item["sk"]["S"])
    assert error.pk in str(error)
    assert error.sk in str(error)


@pytest.mark.parametrize(("decode", "item", "name"), ATTRIBUTES)
def test_an_item_that_lacks_an_attribute_is_damaged(decode: Decode, item: Item, name: str) -> None:
    assert_damaged(decode, without(item, name))
    assert name in str(damage(decode, without(item, name)))


@pytest.mark.parametrize(("decode", "item", "name"), ATTRIBUTES)
@pytest.mark.parametrize(
    "value", [{"S": "7"}, {"N": "7"}, {"B": b"7"}, {"BOOL": True}, {"NULL": True}, {"L": []}, {"M": {"N": {"N": "7"}}}]
)
def test_an_item_with_an_attribute_of_another_type_is_damaged(
    decode: Decode, item: Item, name: str, value: dict[str, Any]
) -> None:
    if value.keys() != item[name].keys():
        assert_damaged(decode, {**item, name: value})


@pytest.mark.parametrize(("decode", "item", "name"), INTEGERS)
@pytest.mark.parametrize("number", ["1.5", "1E+3", "", "NaN", "0x1", "1_0", " 1", "1\n", "01", "\u0661", "9" * 39])
def test_an_item_with_a_number_that_is_not_whole_is_damaged(decode: Decode, item: Item, name: str, number: str) -> None:
    assert_damaged(decode, {**item, name: {"N": number}})


@pytest.mark.parametrize(
    ("decode", "item", "name", "value"),
    [
        (items.delta_of, DELTA, "change", {"N": str(CHANGE_MAX + 1)}),
        (items.delta_of, DELTA, "change", {"N": str(-CHANGE_MAX - 1)}),
        (items.checkpoint_of, CHECKPOINT, "total", {"N": str(2 * CHANGE_MAX + 1)}),
        (items.checkpoint_of, CHECKPOINT, "count", {"N": "-1"}),
        (items.checkpoint_of, CHECKPOINT, "count", {"N": "0"}),
        (items.checkpoint_of, CHECKPOINT, "version", {"N": "0"}),
        (items.checkpoint_of, CHECKPOINT, "watermark", {"S": B.lower()}),
        (items.checkpoint_of, CHECKPOINT, "last", {"S": ""}),
        (items.note_of, NOTE, "version", {"N": "0"}),
        (items.segment_of, SEGMENT, "entries", {"B": ENTRIES[:-1]}),
        (items.segment_of, SEGMENT, "entries", {"B": ENTRIES[24:] + ENTRIES[:24]}),
        (items.segment_of, SEGMENT, "entries", {"B": ENTRIES[:24] * 2}),
        (items.segment_of, SEGMENT, "entries", {"B": ENTRIES[:40] + (CHANGE_MAX + 1).to_bytes(8, "big")}),
        (items.segment_of, SEGMENT, "entries", {"B": tokens.to_bytes(C) + bytes(8)}),
    ],
)
def test_an_item_with_a_value_out_of_range_is_damaged(
    decode: Decode, item: Item, name: str, value: dict[str, Any]
) -> None:
    assert_damaged(decode, {**item, name: value})


@pytest.mark.parametrize("sk", ["checkpoint", A.lower(), A + "0", "8" + A[1:], "segment#x", "note"])
def test_a_delta_under_what_is_no_token_is_damaged(sk: str) -> None:
    assert_damaged(items.delta_of, {**DELTA, "sk": {"S": sk}})


def test_a_damaged_item_says_why_and_nothing_of_a_caller() -> None:
    with pytest.raises(DamagedItem) as raised:
        items.delta_of(LANE, {**DELTA, "sk": {"S": "note"}})
    assert raised.value.why == "A token is a ULID of 26 characters, not 'note'"


@pytest.mark.parametrize(
    "sk",
    [
        "checkpoint",
        "segment",
        f"segment#{B}",
        f"segment#{B}#",
        f"segment#{B}#42",
        f"segment#{B}#0000000000",
        f"segment#{B}#-000000042",
        f"segment#{B}#00000000\u0664\u0662",
        f"segment#{B}#0000000042#",
        f"segment#{B}#0000000042#x",
        f"segment#{B.lower()}#0000000042",
        f"segmentX#{B}#0000000042",
        "segment##0000000042",
        f"segment#{B}#{'9' * 5_000}",
    ],
)
def test_a_segment_under_another_sort_key_is_damaged(sk: str) -> None:
    assert_damaged(items.segment_of, {**SEGMENT, "sk": {"S": sk}})


def test_an_item_without_keys_is_damaged_and_not_an_accident() -> None:
    assert damage(items.delta_of, {"change": {"N": "1"}}).sk == "?"


def test_further_attributes_on_a_delta_are_ignored() -> None:
    extra: Item = {"trace": {"S": "x"}, "ttl": {"N": "1.5"}, "by": {"M": {}}}
    assert items.delta_of(LANE, {**DELTA, **extra}) == Delta(LANE, A, -6)


@pytest.mark.parametrize("item", [None, {}, {"version": {"S": "4"}}, {"version": {"N": "4.5"}}])
def test_what_carries_no_version_has_none(item: Item | None) -> None:
    assert items.version_of(item) is None


@pytest.mark.parametrize("error", [DamagedItem("p", "s", "why"), InvalidCounter("Why.")])
def test_an_error_survives_a_copy_and_a_process_pool(error: Exception) -> None:
    for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)


# -- keys ----------------------------------------------------------------------------------------------------------


@given(lanes)
def test_a_lane_is_known_by_its_partition_keys(lane: Lane) -> None:
    assert items.lane_of(items.delta_pk(lane)) == ("delta", lane)
    assert items.lane_of(items.fold_pk(lane)) == ("fold", lane)


@pytest.mark.parametrize(
    "counter",
    ["a#b", "#", "###", "a/b", "100%", "delta#eu-west-1#0#x", "fold#eu-west-1#0#x", "checkpoint", "clean", "0#x"],
)
def test_a_name_that_looks_like_a_key_confuses_nothing(counter: str) -> None:
    for shard in (0, 7):
        lane = Lane("us-east-1", shard, counter)
        assert items.lane_of(items.delta_pk(lane)) == ("delta", lane)
        assert items.lane_of(items.fold_pk(lane)) == ("fold", lane)


@given(lanes, lanes)
def test_two_lanes_share_no_partition_key(a: Lane, b: Lane) -> None:
    keys = {items.delta_pk(a), items.fold_pk(a), items.delta_pk(b), items.fold_pk(b)}
    assert len(keys) == (2 if a == b else 4)


@pytest.mark.parametrize(
    "pk",
    [
        "",
        "delta",
        "delta#eu-west-1#0",
        "delta#eu-west-1#0#",
        "delta#eu-west-1#00#x",
        "delta#eu-west-1#x#x",
        "delta#eu-west-1#\u0661#x",
        "delta#eu-west-1#-1#x",
        "delta#EU#0#x",
        "delta##0#x",
        "delta#eu-west-1#0#a b",
        "Delta#eu-west-1#0#x",
        "order#eu-west-1#0#x",
    ],
)
def test_a_partition_key_of_others_is_nobodys_lane(pk: str) -> None:
    assert items.lane_of(pk) is None


@given(made_tokens, made_tokens, versions)
def test_the_bounds_of_segments_hold_in_the_order_of_sort_keys(token: str, hi: str, version: int) -> None:
    sk = items.segment_key(LANE, hi, version).sk
    assert items.SEGMENTS_FROM < sk < items.SEGMENTS_UPTO
    assert (sk > items.segments_before(token)) == (hi >= token)
    assert (sk <= items.segments_of_hi(token)) == (hi <= token)
    assert not items.SEGMENTS_FROM < "segments" <= items.SEGMENTS_UPTO
    assert not items.SEGMENTS_FROM < items.checkpoint_key(LANE).sk <= items.SEGMENTS_UPTO
    assert not items.SEGMENTS_FROM < items.note_key(LANE).sk <= items.SEGMENTS_UPTO


@given(versions, versions)
def test_segments_under_one_hi_stand_in_the_order_of_their_versions(v1: int, v2: int) -> None:
    assert (items.segment_key(LANE, A, v1).sk < items.segment_key(LANE, A, v2).sk) == (v1 < v2)
