"""How values stand in the table, and that nothing else is taken for one."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core import items, tokens
from ledger.core.errors import DamagedItem, InvalidCounter
from ledger.core.ranges import CHANGE_MAX
from ledger.core.requests import Item, Key, key_of
from ledger.core.values import Checkpoint, CleanNote, Delta, Lane, Segment
from tests.strategies import checkpoints, deltas, lanes, made_tokens, notes, segments, versions

LANE, OTHER = Lane("eu-west-1", 0, "stock:85123A"), Lane("us-east-1", 0, "stock:85123A")
A, B, C = (tokens.make(1_000 + n, bytes(10)) for n in range(3))
PK = "fold#eu-west-1#0#stock:85123A"
ENTRIES = (
    tokens.to_bytes(A)
    + (-6).to_bytes(8, "big", signed=True)
    + tokens.to_bytes(B)
    + (4).to_bytes(8, "big")
)

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
SEGMENT: Item = {"pk": {"S": PK}, "sk": {"S": f"segment#{B}#0000000042"}, "entries": {"B": ENTRIES}}
NOTE: Item = {
    "pk": {"S": PK},
    "sk": {"S": "clean"},
    "version": {"N": "4"},
    "noted_ms": {"N": "1291191960000"},
}

NO_NUMBER = [
    "1.0",
    "1E3",
    "",
    "NaN",
    "-0",
    "+1",
    "01",
    "1_0",
    " 1",
    "1\n",
    "\u0661",
    "0x1",
    "1" * 39,
    "1" * 5_000,
]
NO_TOKEN = [
    "",
    A.lower(),
    "8" + A[1:],
    A[:-1],
    A + "0",
    A[:-1] + "U",
    A[:-1] + "i",
    " " + A[1:],
    "\ud800",
]
NO_SEGMENT = [
    *("", "checkpoint", "segment", "segment##0000000042"),
    *(f"segmentX#{B}#0000000042", f"segment#{B.lower()}#0000000042"),
    *(
        f"segment#{B}",
        f"segment#{B}#",
        f"segment#{B}#42",
        f"segment#{B}#0000000000",
        f"segment#{B}#-000000042",
    ),
    *(f"segment#{B}#0000000042#", f"segment#{B}#0000000042#x", f"segment#{B}#00000000\u0664\u0662"),
    f"segment#{B}#{'9' * 5_000}",
]
NO_ENTRIES = [
    *(
        ENTRIES[:-1],
        ENTRIES + b"\0",
        ENTRIES[24:] + ENTRIES[:24],
        ENTRIES[:24] * 2,
        tokens.to_bytes(C) + bytes(8),
    ),
    *(
        ENTRIES[:40] + change.to_bytes(8, "big", signed=True)
        for change in (CHANGE_MAX + 1, -CHANGE_MAX - 1)
    ),
]


@dataclass(frozen=True)
class Kind:
    """One kind of value, both ways.

    bad: values of its attributes that cannot be, besides what no attribute may be.
    """

    values: st.SearchStrategy[Any]
    encode: Callable[[Any], Item]
    decode: Callable[[Lane, Item], Any]
    key: Callable[[Any], Key]
    example: Any
    item: Item
    bad: dict[str, list[Any]]


KINDS = {
    "delta": Kind(
        deltas, items.delta_item, items.delta_of, items.delta_key, Delta(LANE, A, -6), DELTA,
        {
            "change": [CHANGE_MAX + 1, -CHANGE_MAX - 1],
            "sk": ["checkpoint", "segment#x", "note", *NO_TOKEN],
        },
    ),
    "checkpoint": Kind(
        checkpoints(), items.checkpoint_item, items.checkpoint_of,
        lambda value: items.checkpoint_key(value.lane),
        Checkpoint(LANE, -2, 2, B, 4, A, 1291191960000), CHECKPOINT,
        {
            "total": [2 * CHANGE_MAX + 1, -2 * CHANGE_MAX - 1],
            "count": [0, -1, 10**20], "version": [0, -1, 10**10],
            "watermark": NO_TOKEN, "last": NO_TOKEN,
            "sk": ["", "Checkpoint", "chec\u212apoint", "checkpoint ", A],
        },
    ),
    "segment": Kind(
        segments(), items.segment_item, items.segment_of,
        lambda value: items.segment_key(value.lane, value.hi, value.version),
        Segment.of(LANE, B, 42, [Delta(LANE, A, -6), Delta(LANE, B, 4)]), SEGMENT,
        {"entries": NO_ENTRIES, "sk": NO_SEGMENT},
    ),
    "clean note": Kind(
        notes, items.note_item, items.note_of, lambda value: items.note_key(value.lane),
        CleanNote(LANE, 4, 1291191960000), NOTE,
        {"version": [0, -1, 10**10], "sk": ["", "Clean", "clean "]},
    ),
}  # fmt: skip
OTHER_TYPES: list[dict[str, Any]] = [
    *(
        {"S": "7"},
        {"N": "7"},
        {"B": b"7"},
        {"BOOL": True},
        {"NULL": True},
        {"L": []},
        {"SS": ["7"]},
        {"NS": ["7"]},
    ),
    *({"M": {"S": {"S": A}}}, {"M": {"N": {"N": "7"}}}, {}),
]
EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))


@EACH
def test_an_item_is_written_as_the_data_model_says(kind: Kind) -> None:
    assert kind.encode(kind.example) == kind.item
    assert kind.decode(LANE, kind.item) == kind.example


@EACH
@given(data=st.data())
def test_an_item_comes_back_also_beside_further_attributes(kind: Kind, data: st.DataObject) -> None:
    value = data.draw(kind.values)
    item = kind.encode(value)
    further = data.draw(st.dictionaries(st.text(min_size=1), st.sampled_from(OTHER_TYPES)))
    for came in (item, {**further, **item}):
        assert kind.decode(value.lane, came) == value
    assert key_of(item) == kind.key(value)
    assert items.version_of(item) == (None if "version" not in item else value.version)


def assert_damaged(kind: Kind, item: Item, lane: Lane = LANE) -> DamagedItem:
    with pytest.raises(DamagedItem) as raised:
        kind.decode(lane, item)
    error = raised.value
    assert Key(error.pk, error.sk) == key_of(item)
    assert repr(error.pk) in str(error)
    assert repr(error.sk) in str(error)
    str(error).encode()
    return error


@EACH
def test_an_item_with_one_thing_that_cannot_be_is_damaged(kind: Kind) -> None:
    for name, value in kind.item.items():
        ((is_of, _),) = value.items()
        lost = {key: other for key, other in kind.item.items() if key != name}
        assert name in ("pk", "sk") or name in str(assert_damaged(kind, lost))
        bad = [*OTHER_TYPES, *({"N": text} for text in NO_NUMBER)]
        for other in [
            each
            for each in bad
            if each.keys() != value.keys() or (is_of == "N" and each != {"N": "7"})
        ]:
            assert_damaged(kind, {**kind.item, name: other})
    pk = kind.item["pk"]["S"]
    others = (find(lane) for lane in (OTHER, LANE) for find in (items.delta_pk, items.fold_pk))
    for other_pk in (*(each for each in others if each != pk), f"{pk}#", pk.upper(), ""):
        assert_damaged(kind, {**kind.item, "pk": {"S": other_pk}})
    for name, values in kind.bad.items():
        ((is_of, _),) = kind.item[name].items()
        for each in values:
            assert_damaged(kind, {**kind.item, name: {is_of: str(each) if is_of == "N" else each}})
    assert assert_damaged(KINDS["delta"], {**DELTA, "sk": {"S": "note"}}).why == (
        "A token is a ULID of 26 characters, not 'note'"  # and nothing of a caller
    )


def test_an_item_without_a_version_has_none() -> None:
    for item in (
        None,
        {},
        {"version": {"S": "4"}},
        {"version": {"N": "4.5"}},
        {"version": {"N": "0"}},
    ):
        assert items.version_of(item) is None
    for error in (DamagedItem("p", "s", "why"), InvalidCounter("Why.")):
        for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
            assert (str(twin), vars(twin)) == (str(error), vars(error))


NO_LANE = [
    *(
        "",
        "delta",
        "delta#eu-west-1#0",
        "delta#eu-west-1#0#",
        "delta#eu-west-1#00#x",
        "delta#eu-west-1#x#x",
    ),
    *(
        "delta#eu-west-1#\u0661#x",
        "delta#eu-west-1#-1#x",
        "delta#EU#0#x",
        "delta##0#x",
        "delta#eu-west-1#0#a b",
    ),
    *("Delta#eu-west-1#0#x", "order#eu-west-1#0#x"),
]


@given(lanes, lanes)
def test_a_lane_is_known_by_its_partition_keys_and_shares_none(a: Lane, b: Lane) -> None:
    for counter in (
        a.counter,
        "a#b",
        "###",
        "a/b",
        "100%",
        "delta#eu-west-1#0#x",
        "fold#eu-west-1#0#x",
        "checkpoint",
    ):
        named = Lane(a.region, a.shard, counter)
        assert items.lane_of(items.delta_pk(named)) == ("delta", named)
        assert items.lane_of(items.fold_pk(named)) == ("fold", named)
    keys = {items.delta_pk(a), items.fold_pk(a), items.delta_pk(b), items.fold_pk(b)}
    assert len(keys) == (2 if a == b else 4)
    assert [items.lane_of(pk) for pk in NO_LANE] == [None] * len(NO_LANE)


@given(made_tokens, made_tokens, versions, versions)
def test_the_bounds_of_segments_hold_in_the_order_of_sort_keys(
    token: str, hi: str, version: int, other: int
) -> None:
    sk = items.segment_key(LANE, hi, version).sk
    assert items.SEGMENTS_FROM < sk < items.SEGMENTS_UPTO
    assert (sk < items.segment_key(LANE, hi, other).sk) == (version < other)
    assert (sk > items.segments_before(token)) == (hi >= token)
    assert (sk <= items.segments_of_hi(token)) == (hi <= token)
    for outside in ("segments", items.checkpoint_key(LANE).sk, items.note_key(LANE).sk):
        assert not items.SEGMENTS_FROM < outside <= items.SEGMENTS_UPTO
