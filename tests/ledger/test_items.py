"""How values stand in the table, and that nothing else is taken for one."""

import copy
import json
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import botocore.session
import pytest
from botocore.parsers import create_parser
from botocore.serialize import create_serializer
from hypothesis import given
from hypothesis import strategies as st

from ledger import items, tokens
from ledger.errors import DamagedItem, InvalidCounter
from ledger.ranges import CHANGE_MAX
from ledger.requests import Item, Key, key_of
from ledger.values import Checkpoint, CleanNote, Delta, Lane, Segment
from tests.strategies import changes, checkpoints, deltas, full_segment, lanes, made_tokens, notes, segments, versions

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


@dataclass(frozen=True)
class Kind:
    """One kind of value, both ways: the table that the round trips and the damage below go through."""

    values: st.SearchStrategy[Any]
    encode: Callable[[Any], Item]
    decode: Decode
    key: Callable[[Any], Key]
    written: st.SearchStrategy[Item]


def numbers(most: int, least: int = 0) -> st.SearchStrategy[dict[str, str]]:
    """Whole numbers as DynamoDB spells them."""
    return (st.integers(least, most) | st.sampled_from([least, most])).map(lambda number: {"N": str(number)})


CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
spelled_tokens = st.builds(str.__add__, st.sampled_from("01234567"), st.text(CROCKFORD, min_size=25, max_size=25))
lane_texts = st.builds(
    "{}#{}#{}".format,
    st.sampled_from(["eu-west-1", "-", "x" * 32]),
    st.sampled_from(["0", "1", "999999"]),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=256),
)


@st.composite
def written(draw: st.DrawFn, /, kind: str, sk: st.SearchStrategy[str], **attributes: st.SearchStrategy[Any]) -> Item:
    """An item as another program may have put it: by the data model's words, and by none of this library's code."""
    keys = {"pk": {"S": kind + "#" + draw(lane_texts)}, "sk": {"S": draw(sk)}}
    return keys | {name: draw(strategy) for name, strategy in attributes.items()}


@st.composite
def written_checkpoints(draw: st.DrawFn) -> Item:
    count = draw(st.integers(0, 10**20 - 1))
    rest = written(
        "fold",
        st.just("checkpoint"),
        total=numbers(count * 10**18, -count * 10**18),
        count=st.just({"N": str(count)}),
        watermark=spelled_tokens.map(lambda text: {"S": text}),
        version=numbers(10**10 - 1, 1),
        last=spelled_tokens.map(lambda text: {"S": text}),
        committed_ms=numbers(10**38 - 1, 1 - 10**38),
    )
    return draw(rest)


@st.composite
def written_segments(draw: st.DrawFn) -> Item:
    listed = sorted(draw(st.sets(st.binary(min_size=16, max_size=16), max_size=8)))
    entries = b"".join(token + draw(changes).to_bytes(8, "big", signed=True) for token in listed)
    hi = "7" + "Z" * 25 if listed else draw(spelled_tokens)
    version = draw(st.integers(1, 10**10 - 1))
    rest = written("fold", st.just(f"segment#{hi}#{version:010}"), entries=st.just({"B": entries}))
    return draw(rest)


KINDS = {
    "delta": Kind(
        deltas, items.delta_item, items.delta_of, items.delta_key,
        written("delta", spelled_tokens, change=numbers(10**18, -(10**18))),
    ),
    "checkpoint": Kind(
        checkpoints(), items.checkpoint_item, items.checkpoint_of, lambda value: items.checkpoint_key(value.lane),
        written_checkpoints(),
    ),
    "segment": Kind(
        segments(), items.segment_item, items.segment_of,
        lambda value: items.segment_key(value.lane, value.hi, value.version),
        written_segments(),
    ),
    "clean note": Kind(
        notes, items.note_item, items.note_of, lambda value: items.note_key(value.lane),
        written("fold", st.just("clean"), version=numbers(10**10 - 1, 1), noted_ms=numbers(10**38 - 1, 1 - 10**38)),
    ),
}  # fmt: skip


# -- the format is public, and never changes -----------------------------------------------------------------------


def test_items_are_written_as_the_data_model_says() -> None:
    assert items.delta_item(Delta(LANE, A, -6)) == DELTA
    assert items.delta_key(Delta(LANE, A, -6)) == Key("delta#eu-west-1#0#stock:85123A", A)
    assert items.checkpoint_item(Checkpoint(LANE, -2, 2, B, 4, A, 1291191960000)) == CHECKPOINT
    assert items.segment_item(Segment.of(LANE, B, 42, [Delta(LANE, A, -6), Delta(LANE, B, 4)])) == SEGMENT
    assert items.note_item(CleanNote(LANE, 4, 1291191960000)) == NOTE


# -- round trips ---------------------------------------------------------------------------------------------------


EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))


@EACH
@given(data=st.data())
def test_what_was_written_comes_back_also_through_botocore_and_beside_further_attributes(
    kind: Kind, data: st.DataObject
) -> None:
    value = data.draw(kind.values)
    item = kind.encode(value)
    further = data.draw(st.dictionaries(st.text(min_size=1), st.sampled_from(OTHER_TYPES)))
    for came in (item, over_the_wire(item), {**further, **item}):
        assert kind.decode(value.lane, came) == value
    assert key_of(item) == kind.key(value)
    assert items.version_of(item) == (None if "version" not in item else value.version)


@EACH
@given(data=st.data())
def test_what_others_wrote_is_read_and_written_again_letter_by_letter(kind: Kind, data: st.DataObject) -> None:
    item = data.draw(kind.written)
    assert kind.encode(kind.decode(lane_of(item), item)) == item


def test_a_segment_of_as_many_entries_as_one_may_have_comes_back() -> None:
    segment = full_segment()
    item = items.segment_item(segment)
    assert items.segment_of(segment.lane, over_the_wire(item)) == segment
    assert len(item["entries"]["B"]) < 400 * 1_024
    assert_damaged(items.segment_of, {**item, "entries": {"B": item["entries"]["B"] + bytes(24)}}, segment.lane)


MODEL = botocore.session.Session().get_service_model("dynamodb")
SERIALIZER, PARSER = create_serializer("json"), create_parser("json")


def over_the_wire(item: Item) -> Item:
    """The item as GetItem answers it, after PutItem sent it: JSON, and base64 in it."""
    arguments = {"TableName": "counters", "Item": item}
    request: Any = SERIALIZER.serialize_to_request(arguments, MODEL.operation_model("PutItem"))
    body = json.dumps({"Item": json.loads(request["body"])["Item"]}).encode()
    shape: Any = MODEL.operation_model("GetItem").output_shape
    answer: Any = PARSER.parse({"body": body, "status_code": 200, "headers": {}}, shape)
    came: Item = answer["Item"]
    return came


def lane_of(item: Item) -> Lane:
    found = items.lane_of(item["pk"]["S"])
    assert found is not None
    return found[1]


# -- damage --------------------------------------------------------------------------------------------------------

EXAMPLES: list[tuple[Decode, Mapping[str, Any], str]] = [
    (items.delta_of, DELTA, "change"),
    (items.checkpoint_of, CHECKPOINT, "total count watermark version last committed_ms"),
    (items.segment_of, SEGMENT, "entries"),
    (items.note_of, NOTE, "version noted_ms"),
]
OTHER_TYPES: list[dict[str, Any]] = [
    *({"S": "7"}, {"N": "7"}, {"B": b"7"}, {"BOOL": True}, {"NULL": True}, {"L": []}, {"SS": ["7"]}, {"NS": ["7"]}),
    *({"M": {"S": {"S": A}}}, {"M": {"N": {"N": "7"}}}, {}),
]
NO_SEGMENT = [
    *("checkpoint", "segment", "segment##0000000042", f"segmentX#{B}#0000000042", f"segment#{B.lower()}#0000000042"),
    *(f"segment#{B}", f"segment#{B}#", f"segment#{B}#42", f"segment#{B}#0000000000", f"segment#{B}#-000000042"),
    *(f"segment#{B}#0000000042#", f"segment#{B}#0000000042#x", f"segment#{B}#00000000\u0664\u0662"),
    f"segment#{B}#{'9' * 5_000}",
]
INTEGERS = [(decode, item, name) for decode, item, names in EXAMPLES for name in names.split() if "N" in item[name]]
ATTRIBUTES = [(decode, item, name) for decode, item, names in EXAMPLES for name in names.split()]


def without(item: Mapping[str, Any], name: str) -> Item:
    return {key: value for key, value in item.items() if key != name}


def damage(decode: Decode, item: Item, lane: Lane = LANE) -> DamagedItem:
    with pytest.raises(DamagedItem) as raised:
        decode(lane, item)
    return raised.value


def assert_damaged(decode: Decode, item: Item, lane: Lane = LANE) -> None:
    error = damage(decode, item, lane)
    assert Key(error.pk, error.sk) == key_of(item)
    assert repr(error.pk) in str(error)
    assert repr(error.sk) in str(error)
    str(error).encode()


@pytest.mark.parametrize(("decode", "item", "name"), ATTRIBUTES)
def test_an_item_that_lacks_an_attribute_or_has_it_of_another_type_is_damaged(
    decode: Decode, item: Item, name: str
) -> None:
    assert_damaged(decode, without(item, name))
    assert name in str(damage(decode, without(item, name)))
    for value in OTHER_TYPES:
        if value.keys() != item[name].keys():
            assert_damaged(decode, {**item, name: value})


@pytest.mark.parametrize(("decode", "item", "name"), INTEGERS)
@pytest.mark.parametrize("number", ["1.5", "1E+3", "", "NaN", "0x1", "1_0", " 1", "1\n", "01", "\u0661", "9" * 39])
def test_an_item_with_a_number_that_is_not_whole_is_damaged(decode: Decode, item: Item, name: str, number: str) -> None:
    assert_damaged(decode, {**item, name: {"N": number}})


@pytest.mark.parametrize(
    ("decode", "item", "name", "value"),
    [
        *((items.delta_of, DELTA, "change", {"N": str(change)}) for change in (CHANGE_MAX + 1, -CHANGE_MAX - 1)),
        (items.checkpoint_of, CHECKPOINT, "total", {"N": str(2 * CHANGE_MAX + 1)}),
        *((items.checkpoint_of, CHECKPOINT, name, {"N": "0"}) for name in ("count", "version")),
        (items.checkpoint_of, CHECKPOINT, "count", {"N": "-1"}),
        (items.checkpoint_of, CHECKPOINT, "watermark", {"S": B.lower()}),
        (items.checkpoint_of, CHECKPOINT, "last", {"S": ""}),
        (items.note_of, NOTE, "version", {"N": "0"}),
        (items.segment_of, SEGMENT, "entries", {"B": ENTRIES[:40] + (CHANGE_MAX + 1).to_bytes(8, "big")}),
        *(
            (items.segment_of, SEGMENT, "entries", {"B": entries})
            for entries in (ENTRIES[:-1], ENTRIES[24:] + ENTRIES[:24], ENTRIES[:24] * 2, tokens.to_bytes(C) + bytes(8))
        ),
        *(
            (items.delta_of, DELTA, "sk", {"S": sk})
            for sk in ("checkpoint", A.lower(), A + "0", "8" + A[1:], "segment#x", "note")
        ),
        *((items.segment_of, SEGMENT, "sk", {"S": sk}) for sk in NO_SEGMENT),
    ],
)
def test_an_item_with_a_value_out_of_range_is_damaged(
    decode: Decode, item: Item, name: str, value: dict[str, Any]
) -> None:
    assert_damaged(decode, {**item, name: value})


def test_a_damaged_item_says_why_and_nothing_of_a_caller_and_needs_no_keys() -> None:
    assert damage(items.delta_of, {**DELTA, "sk": {"S": "note"}}).why == (
        "A token is a ULID of 26 characters, not 'note'"
    )
    assert damage(items.delta_of, {"change": {"N": "1"}}).sk == "?"


NO_NUMBER = ["1.0", "1E3", "", "NaN", "-0", "+1", "01", "1_0", " 1", "1\n", "\u0661", "0x1", "1" * 39, "1" * 5_000]
NO_TOKEN = ["", A.lower(), "8" + A[1:], A[:-1], A + "0", A[:-1] + "U", A[:-1] + "i", " " + A[1:], "\ud800"]


@st.composite
def damaged(draw: st.DrawFn, kind: Kind) -> tuple[Lane, Item]:
    """A value's item with one thing in it that cannot be."""
    value = draw(kind.values)
    item = dict(kind.encode(value))
    name = draw(st.sampled_from(sorted(item)))
    ways = ["lost", "of another type"] + [key for key in ("N", "B") if key in item[name]]
    ways += [name] if name in ("pk", "sk") else ["token"] if "S" in item[name] else []
    match draw(st.sampled_from(ways)):
        case "lost":
            del item[name]
        case "of another type":
            item[name] = draw(st.sampled_from(OTHER_TYPES).filter(lambda other: other.keys() != item[name].keys()))
        case "N":
            beyond = {
                "change": numbers(10**38 - 1, CHANGE_MAX + 1),
                "total": numbers(10**38 - 1, getattr(value, "count", 0) * CHANGE_MAX + 1)
                if getattr(value, "count", 0) < 10**19
                else st.nothing(),
                "count": numbers(10**38 - 1, 10**20) | st.just({"N": "-1"}),
                "version": numbers(10**38 - 1, 10**10) | st.sampled_from([{"N": "0"}, {"N": "-1"}]),
            }
            text = st.sampled_from(NO_NUMBER).map(lambda text: {"N": text})
            item[name] = draw(text | beyond.get(name, st.nothing()))
        case "B":
            item[name] = {"B": draw(spoiled(item[name]["B"], value.hi))}
        case "pk":
            other = draw(lanes.filter(lambda lane: lane != value.lane))
            pks = [items.delta_pk(other), items.fold_pk(other), item["pk"]["S"] + "#", item["pk"]["S"].upper(), ""]
            pks.append((items.fold_pk if kind is KINDS["delta"] else items.delta_pk)(value.lane))
            item["pk"] = {"S": draw(st.sampled_from(pks))}
        case "sk":
            sk = item["sk"]["S"]
            sks = ["", sk + " ", sk[:-1], sk.swapcase(), sk + "#", "chec\u212apoint", "note", "segment#", *NO_TOKEN]
            item["sk"] = {"S": draw(st.sampled_from(sks).filter(lambda other: other != sk))}
        case _:
            item[name] = {"S": draw(st.sampled_from(NO_TOKEN))}
    return value.lane, item


@st.composite
def spoiled(draw: st.DrawFn, entries: bytes, hi: str) -> bytes:
    """Entries that no segment under `hi` holds."""
    above = int.from_bytes(tokens.to_bytes(hi), "big") + 1
    tail = st.binary(min_size=1, max_size=23)
    ways = [tail.map(lambda part: entries + part), tail.map(lambda part: part + entries)]
    if above < 2**128:
        ways.append(st.integers(above, 2**128 - 1).map(lambda token: entries + token.to_bytes(16, "big") + bytes(8)))
    if entries:
        much = st.integers(CHANGE_MAX + 1, 2**63 - 1).flatmap(lambda more: st.sampled_from([more, -more]))
        ways += [
            st.integers(1, 23).map(lambda size: entries[:-size]),
            st.just(entries + entries),
            st.just(entries + entries[-24:]),
            much.map(lambda change: entries[:-8] + change.to_bytes(8, "big", signed=True)),
        ]
    if len(entries) > 24:
        ways.append(st.just(entries[24:] + entries[:24]))
    return draw(st.one_of(ways))


@EACH
@given(data=st.data())
def test_an_item_with_one_thing_that_cannot_be_is_damaged(kind: Kind, data: st.DataObject) -> None:
    lane, item = data.draw(damaged(kind))
    assert_damaged(kind.decode, item, lane)


anything = st.one_of(
    *(kind.written for kind in KINDS.values()),
    st.dictionaries(
        st.sampled_from(["pk", "sk", "change", "total", "count", "watermark", "version", "last", "entries"]),
        st.sampled_from(OTHER_TYPES)
        | spelled_tokens.map(lambda text: {"S": text})
        | st.text().map(lambda text: {"S": text})
        | st.from_regex(r"-?[0-9]{1,40}", fullmatch=True).map(lambda text: {"N": text})
        | st.binary(max_size=48).map(lambda data: {"B": data}),
    ),
)


@EACH
@given(data=st.data())
def test_a_mixture_of_items_is_damaged_or_read_as_nothing_but_what_it_says(kind: Kind, data: st.DataObject) -> None:
    ours, other = data.draw(kind.written), data.draw(anything)
    lane, item = lane_of(ours), dict(ours)
    for name in data.draw(st.sets(st.sampled_from(sorted({*ours, *other})))):
        item[name] = other.get(name, {})
    try:
        value = kind.decode(lane, item)
    except DamagedItem:
        return
    assert kind.encode(value) == {name: item[name] for name in ours}


@pytest.mark.parametrize(
    "item", [None, {}, {"version": {"S": "4"}}, {"version": {"N": "4.5"}}, {"version": {"N": "0"}}]
)
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
    for counter in (
        lane.counter,
        *("a#b", "#", "###", "a/b", "100%", "delta#eu-west-1#0#x", "fold#eu-west-1#0#x", "checkpoint", "clean", "0#x"),
    ):
        named = Lane(lane.region, lane.shard, counter)
        assert items.lane_of(items.delta_pk(named)) == ("delta", named)
        assert items.lane_of(items.fold_pk(named)) == ("fold", named)


@given(lanes, lanes)
def test_two_lanes_share_no_partition_key(a: Lane, b: Lane) -> None:
    keys = {items.delta_pk(a), items.fold_pk(a), items.delta_pk(b), items.fold_pk(b)}
    assert len(keys) == (2 if a == b else 4)


@pytest.mark.parametrize(
    "pk",
    [
        *("", "delta", "delta#eu-west-1#0", "delta#eu-west-1#0#", "delta#eu-west-1#00#x", "delta#eu-west-1#x#x"),
        *("delta#eu-west-1#\u0661#x", "delta#eu-west-1#-1#x", "delta#EU#0#x", "delta##0#x", "delta#eu-west-1#0#a b"),
        *("Delta#eu-west-1#0#x", "order#eu-west-1#0#x"),
    ],
)
def test_a_partition_key_of_others_is_nobodys_lane(pk: str) -> None:
    assert items.lane_of(pk) is None


@given(made_tokens, made_tokens, versions, versions)
def test_the_bounds_of_segments_hold_in_the_order_of_sort_keys(token: str, hi: str, version: int, other: int) -> None:
    sk = items.segment_key(LANE, hi, version).sk
    assert items.SEGMENTS_FROM < sk < items.SEGMENTS_UPTO
    assert (sk < items.segment_key(LANE, hi, other).sk) == (version < other)
    assert (sk > items.segments_before(token)) == (hi >= token)
    assert (sk <= items.segments_of_hi(token)) == (hi <= token)
    assert not items.SEGMENTS_FROM < "segments" <= items.SEGMENTS_UPTO
    assert not items.SEGMENTS_FROM < items.checkpoint_key(LANE).sk <= items.SEGMENTS_UPTO
    assert not items.SEGMENTS_FROM < items.note_key(LANE).sk <= items.SEGMENTS_UPTO
