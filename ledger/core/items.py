"""The format of the items of lanes: only this file knows their attribute names and keys.

Rule 1: The formats are public (docs/data-model.md) and never change.
Rule 2: It ignores further attributes; one of ours that is missing or not as described is a
DamagedItem.
Rule 3: Each item of a period's lane says when it retires, for the table's time to live; no other
item does.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from ledger.core import tokens
from ledger.core.conditions import Equals
from ledger.core.cost import WRITE_UNIT_BYTES, item_bytes
from ledger.core.days import Days
from ledger.core.decoding import binary, decoded, integer, list_of, number, text_of
from ledger.core.entries import Entries, packed
from ledger.core.errors import InvalidInput
from ledger.core.keep import SECOND, Keep
from ledger.core.limit import Limit, Shape
from ledger.core.period_name import hour_of, hour_text
from ledger.core.ranges import VERSION_MAX
from ledger.core.requests import Item, Key, key_of, keyed
from ledger.core.values import PACK_SPAN_MS, Checkpoint, CleanNote, Delta, Lane, Pack, Segment

# "$" follows "#": every segment's sort key lies between
SEGMENTS_FROM, SEGMENTS_UPTO = "segment#", "segment$"
SHAPE_KEY = Key("shape", "shape")
RETIRES = "retires"
"""Seconds since 1970; the attribute of the table's time to live."""
CONSISTENCY = "consistency"
"""An attribute of the shape: DescribeTable's MultiRegionConsistency, where it was ever STRONG."""
_CHECKPOINT, _NOTE = "checkpoint", "clean"
FREE_BYTES = 60
"""Bytes of a checkpoint's first KB that stay free for attributes to come."""

Value = TypeVar("Value")


def delta_pk(lane: Lane) -> str:
    return f"delta#{lane.name}"


def fold_pk(lane: Lane) -> str:
    return f"fold#{lane.name}"


def delta_key(delta: Delta) -> Key:
    return Key(delta_pk(delta.lane), delta.token)


def checkpoint_key(lane: Lane) -> Key:
    return Key(fold_pk(lane), _CHECKPOINT)


def note_key(lane: Lane) -> Key:
    return Key(fold_pk(lane), _NOTE)


def segment_key(lane: Lane, hi: str, version: int) -> Key:
    return Key(fold_pk(lane), f"{SEGMENTS_FROM}{hi}#{version:010d}")


def segments_before(token: str) -> str:
    """A sort key just below every segment whose hi is at or above `token`."""
    return f"{SEGMENTS_FROM}{token}"


def segments_of_hi(hi: str) -> str:
    """A sort key just above every segment filed under `hi`."""
    return f"{SEGMENTS_FROM}{hi}$"


def lane_of(pk: str) -> tuple[str, Lane] | None:
    """("delta" or "fold", the lane) of a partition key; None when the key is of neither."""
    kind, _, lane = pk.partition("#")
    try:
        return (kind, Lane.parse(lane)) if kind in ("delta", "fold") else None
    except InvalidInput:
        return None


def retiring(lane: Lane) -> Item:
    """The attribute that says when the items of a lane retire; none where they never do."""
    return {RETIRES: number(lane.retires_s)} if lane.retires_s else {}


def delta_item(delta: Delta) -> Item:
    item = {
        "pk": {"S": delta_pk(delta.lane)},
        "sk": {"S": delta.token},
        "change": {"N": str(delta.change)},
    }
    return {**item, **retiring(delta.lane)} if delta.lane.retires_s else item


def delta_of(lane: Lane, item: Item) -> Delta:
    return decoded(
        item, delta_pk(lane), lambda: Delta(lane, text_of(item, "sk"), integer(item, "change"))
    )


def pack_item(pack: Pack) -> Item:
    return keyed(
        Key(delta_pk(pack.lane), pack.name), entries={"B": pack.entries.data}, **retiring(pack.lane)
    )


def is_pack(sk: str) -> bool:
    """Whether the sort key of an item among deltas is a pack's, by its form."""
    return "#" in sk


def highest_of(sk: str) -> str | None:
    """The highest token that an item holds, by its sort key; None when it is neither a delta's
    nor a pack's.
    """
    token = sk.partition("#")[0]
    return token if tokens.is_token(token) else None


def entries_of(lane: Lane, item: Item) -> Entries:
    """The entries of a delta or a pack."""

    def decode() -> Entries:
        sk = text_of(item, "sk")
        if not is_pack(sk):
            delta = Delta(lane, sk, integer(item, "change"))
            entry = packed(delta.token, delta.change)
            return Entries(entry, (entry[: tokens.BYTES],))
        pack = Pack(lane, Entries.read(binary(item, "entries")))
        if pack.name != sk:
            raise ValueError(
                "the sort key is not <highest token>#<32 digits of SHA-256 of the entries>"
            )
        return pack.entries

    return decoded(item, delta_pk(lane), decode)


def as_seen(item: Item) -> Item:
    """The attributes by which a delta or a pack is still the one that was read: a pack's key
    names its content.
    """
    names = ("pk", "sk") if is_pack(key_of(item).sk) else ("pk", "sk", "change")
    return {name: item[name] for name in names}


def last_with(token: str) -> str:
    """The highest token that goes into a pack with this one, if this is its lowest."""
    return tokens.last_of(min(tokens.time_ms(token) + PACK_SPAN_MS, tokens.TIME_MS_MAX))


def tail_after(token: str | None) -> str | None:
    """A sort key just below every item that holds a token above `token`, except items that hold
    a lower one too.
    """
    return None if token is None else f"{token}$"


def tail_upto(token: str) -> str:
    """A sort key just above every item that may hold a token at or below `token`: a pack sorts
    by its highest token.
    """
    return f"{last_with(token)}$"


def checkpoint_item(checkpoint: Checkpoint) -> Item:
    return keyed(
        checkpoint_key(checkpoint.lane),
        total=number(checkpoint.total),
        count=number(checkpoint.count),
        watermark={"S": checkpoint.watermark},
        version=number(checkpoint.version),
        last={"S": checkpoint.last},
        committed_ms=number(checkpoint.committed_ms),
        **retiring(checkpoint.lane),
        **({} if checkpoint.days is None else {"days": {"B": checkpoint.days.data}}),
    )


def room_for_days(checkpoint: Checkpoint) -> int:
    """How many bytes the days of a checkpoint may take, so that it costs one write unit as
    without them.
    """
    return (
        WRITE_UNIT_BYTES
        - FREE_BYTES
        - item_bytes({**checkpoint_item(checkpoint), "days": {"B": b""}})
    )


def checkpoint_of(lane: Lane, item: Item) -> Checkpoint:
    def decode() -> Checkpoint:
        said: dict[str, Any] = {
            name: integer(item, name) for name in ("total", "count", "version", "committed_ms")
        }
        days = Days.read(binary(item, "days")) if "days" in item else None
        return Checkpoint(
            lane,
            **said,
            watermark=text_of(item, "watermark"),
            last=text_of(item, "last"),
            days=days,
        )

    return decoded(item, fold_pk(lane), decode, sk=_CHECKPOINT)


def version_of(item: Item | None) -> int | None:
    """The version of an item, also of a damaged one; None when it has no possible version."""
    try:
        version = integer(item or {}, "version")
    except ValueError:
        return None
    return version if 1 <= version <= VERSION_MAX else None


def version_is(version: int) -> Equals:
    """The condition that the item under a key has this version."""
    return Equals("version", number(version))


def segment_item(segment: Segment) -> Item:
    key = segment_key(segment.lane, segment.hi, segment.version)
    return keyed(key, entries={"B": segment.entries.data}, **retiring(segment.lane))


def segment_of(lane: Lane, item: Item) -> Segment:
    def decode() -> Segment:
        _, hi, version = [*text_of(item, "sk").split("#"), "", ""][:3]
        segment = Segment(
            lane,
            hi,
            int(version) if version.isdecimal() else 0,
            Entries.read(binary(item, "entries")),
        )
        if segment_key(lane, hi, segment.version).sk != text_of(item, "sk"):
            raise ValueError("the sort key is not segment#<hi>#<version in 10 digits>")
        return segment

    return decoded(item, fold_pk(lane), decode)


def note_item(note: CleanNote) -> Item:
    said = {"version": number(note.version), "noted_ms": number(note.noted_ms)}
    return keyed(note_key(note.lane), **said, **retiring(note.lane))


def note_of(lane: Lane, item: Item) -> CleanNote:
    def decode() -> CleanNote:
        return CleanNote(lane, integer(item, "version"), integer(item, "noted_ms"))

    return decoded(item, fold_pk(lane), decode, sk=_NOTE)


def shape_item(shape: Shape, there: Item | None = None) -> Item:
    """The item of a shape. All else that the item `there` holds stays in it."""
    rules = [
        {"M": {"prefix": {"S": prefix}, "shards": number(n)}}
        for prefix, n in sorted(shape.shards.items())
    ]
    limits = [
        {"M": {"prefix": {"S": prefix}, **_limit(limit)}}
        for prefix, limit in sorted(shape.limits.items())
    ]
    periods = [
        {
            "M": {
                "prefix": {"S": prefix},
                "late_s": number(keep.late // SECOND),
                "keep_s": number(keep.keep // SECOND),
                **({"anchor": {"S": hour_text(keep.anchor)}} if keep.anchor else {}),
            }
        }
        for prefix, keep in sorted(shape.periods.items())
    ]
    says_mode = shape.is_strong or CONSISTENCY in (there or {})
    return {
        **(there or {}),
        **keyed(
            SHAPE_KEY,
            regions={"L": [{"S": region} for region in shape.regions]},
            shards={"L": rules},
            **({"limits": {"L": limits}} if limits else {}),
            **({"periods": {"L": periods}} if periods else {}),
            **(
                {CONSISTENCY: {"S": "STRONG" if shape.is_strong else "EVENTUAL"}}
                if says_mode
                else {}
            ),
            version=number(shape.version),
        ),
    }


def shape_of(item: Item) -> Shape:
    def decode() -> Shape:
        regions = tuple(
            text_of({"regions": region}, "regions") for region in list_of(item, "regions")
        )
        shards = _by_prefix(item, "shards", lambda rule: integer(rule, "shards"))
        limits = _by_prefix(item, "limits", _limit_of) if "limits" in item else {}
        periods = _by_prefix(item, "periods", _keep_of) if "periods" in item else {}
        is_strong = CONSISTENCY in item and text_of(item, CONSISTENCY) == "STRONG"
        return Shape(regions, shards, integer(item, "version"), limits, periods, is_strong)

    return decoded(item, SHAPE_KEY.pk, decode, sk=SHAPE_KEY.sk)


def _by_prefix(item: Item, name: str, decode: Callable[[Item], Value]) -> dict[str, Value]:
    rules = [rule.get("M", {}) for rule in list_of(item, name)]
    found = {text_of(rule, "prefix"): decode(rule) for rule in rules}
    if len(found) != len(rules):
        raise ValueError(f"{name} has a prefix twice")
    return found


def _keep_of(said: Item) -> Keep:
    late, keep = (integer(said, name) * SECOND for name in ("late_s", "keep_s"))
    anchor = hour_of(text_of(said, "anchor")) if "anchor" in said else None
    return Keep(late=late, keep=keep, anchor=anchor)


def _limit(limit: Limit) -> Item:
    bounds = {"floor": limit.floor, "ceiling": limit.ceiling}
    said = {name: number(amount) for name, amount in bounds.items() if amount is not None}
    return said if limit.region is None else {**said, "region": {"S": limit.region}}


def _limit_of(said: Item) -> Limit:
    floor, ceiling = (
        integer(said, name) if name in said else None for name in ("floor", "ceiling")
    )
    return Limit(floor, ceiling, text_of(said, "region") if "region" in said else None)
