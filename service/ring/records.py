"""What a batch of the table's stream says of the lanes of a Region.

Rule 1: No record fails a batch, whatever it holds. `arrived` ignores what is no new delta, pack or
gate of this Region and cannot bring a value across a threshold.
Rule 2: An item came late if AWS made its record more than half the allowed lateness after the
item's lowest token. The other half is for clocks, and for a time that AWS rounds down to the second
and calls approximate. An item without that time, or with content that nobody can read, came late.
Rule 3: An item that came by replication is as good as one put here.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ledger.core import items, tokens
from ledger.core.entries import ENTRY, time_ms
from ledger.core.requests import Key
from ledger.core.settings import Settings
from ledger.core.values import Lane
from ledger.gate import items as gates
from service.messages import KEY_MAX
from service.thresholds import crossings

TIME_S_MAX = 10**11
"""No time of a stream record is this far from 1970, in seconds."""

ROUNDED_MS = 1_000
"""ApproximateCreationDateTime is rounded down to the second:
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_StreamRecord.html"""

MARGIN_S = 5
"""A message waits so much longer, because the clocks of writers may be off by so much."""


@dataclass(slots=True)
class Arrived:
    """What a batch says of one lane. late: the sort keys of what came late. rung: whether an item
    rings. ahead_s: of the items that ring and are more than MARGIN_S ahead, how far the furthest
    is; else 0."""

    late: list[str] = field(default_factory=list)
    rung: bool = False
    ahead_s: int = 0


@dataclass(slots=True)
class Batch:
    """lanes: what came, by lane, in the order of the stream. evaluated: of each counter to
    evaluate, its first lane of this Region, which need not have changes. firsts: of each of these
    lanes, the place of its first record in the batch, and that record's sequence number."""

    lanes: dict[Lane, Arrived] = field(default_factory=dict)
    evaluated: dict[Lane, None] = field(default_factory=dict)
    firsts: dict[Lane, tuple[int, str]] = field(default_factory=dict)

    def first_of(self, lanes: Iterable[Lane]) -> tuple[int, str]:
        """The place and the sequence number of the first record of any of these."""
        return min(self.firsts[lane] for lane in lanes)


def arrived(records: Iterable[Any], settings: Settings) -> Batch:
    batch = Batch()
    for place, record in enumerate(records):
        key, change = _key_of(record)
        lane = (
            _lane_of(key, settings) if key is not None and record["eventName"] == "INSERT" else None
        )
        counter = _counter_of(key, settings) if key is not None else None
        found = [] if lane is None else [lane]
        if counter is not None:
            found.append(Lane(settings.region, 0, counter))
            batch.evaluated.setdefault(found[-1])
        for each in found:
            batch.firsts.setdefault(each, (place, str(change.get("SequenceNumber", ""))))
        if key is not None and lane is not None:
            seen = batch.lanes.setdefault(lane, Arrived())
            if key != gates.gate_key(lane):
                _note(seen, key, change, settings)
    return batch


def _note(seen: Arrived, key: Key, change: Mapping[str, Any], settings: Settings) -> None:
    """Note whether a new delta or pack came late, and whether it rings."""
    held = _held(key.sk, change.get("NewImage"))
    made_ms = _made_ms(change.get("ApproximateCreationDateTime"))
    in_time_ms = settings.allowed_lateness_ms / 2 - ROUNDED_MS
    if made_ms is None or held is None or made_ms - held.lowest_ms > in_time_ms:
        seen.late.append(key.sk)
    if rings(key, settings.fold_min if held is None else held.changes, settings.fold_min):
        # Rule 4: a ring waits longer by as much as its item's highest token is ahead of the
        # record.
        ahead_s = 0 if made_ms is None or held is None else -(-(held.highest_ms - made_ms) // 1_000)
        if ahead_s > MARGIN_S:
            seen.ahead_s = max(seen.ahead_s, ahead_s)
        else:
            seen.rung = True


def rings(key: Key, changes: int, fold_min: int) -> bool:
    # Rule 5: an item with n changes rings with the probability n / fold_min, so a lane rings about
    # once while its tail grows by as much as is worth a fold, and nobody counts. A hash of the
    # item's key decides, so the same record rings whenever somebody reads it. The token's own bits
    # cannot decide, because they are the shard.
    digest = hashlib.sha256(f"{key.pk}\0{key.sk}".encode()).digest()
    return int.from_bytes(digest[:8], "big") * fold_min < 2**64 * changes


def _key_of(record: Any) -> tuple[Key | None, Mapping[str, Any]]:
    """The key of an item that was written, and the record's change."""
    match record:
        case {
            "eventName": "INSERT" | "MODIFY",
            "dynamodb": {"Keys": {"pk": {"S": str(pk)}, "sk": {"S": str(sk)}}} as change,
        }:
            return Key(pk, sk), change
    return None, {}


def _lane_of(key: Key, settings: Settings) -> Lane | None:
    """The lane of a delta, pack or gate of this Region."""
    lane = gates.lane_of(key)
    if lane is None and len(key.sk) <= KEY_MAX and items.highest_of(key.sk):
        found = items.lane_of(key.pk)
        lane = found[1] if found is not None and found[0] == "delta" else None
    return settings.known(lane) if lane is not None and lane.region == settings.region else None


def _counter_of(key: Key, settings: Settings) -> str | None:
    """The counter whose thresholds the item of this key can change."""
    lane = gates.lane_of(key)
    found = items.lane_of(key.pk)
    if found is not None and (found[0] == "delta" or key == items.checkpoint_key(found[1])):
        lane = found[1]
    # Rule 6: every item that a read of a value reads, of whatever Region, requests an evaluation
    # where this Region publishes the counter's crossings: deltas and packs, checkpoints (a settled
    # stray, a rebuild) and gates. So does the item of a crossing, because the value may have
    # changed between its read and its write.
    counter = lane.counter if lane is not None else crossings.counter_of(key.pk, settings.region)
    return counter if counter is not None and settings.told_here(counter) else None


class Held(NamedTuple):
    """What a new delta or pack holds: how many changes, and the times of its lowest and its
    highest token.
    """

    changes: int
    lowest_ms: int
    highest_ms: int


def _held(sk: str, image: Any) -> Held | None:
    """None where nobody can read it."""
    if not items.is_pack(sk):
        return Held(1, tokens.time_ms(sk), tokens.time_ms(sk))
    try:
        data = base64.b64decode(image["entries"]["B"], validate=True)
    except (TypeError, KeyError, ValueError, binascii.Error):
        return None
    if len(data) < ENTRY.size:
        return None
    changes = len(data) // ENTRY.size
    return Held(changes, time_ms(data), time_ms(data[(changes - 1) * ENTRY.size :]))


def _made_ms(made: Any) -> int | None:
    """When the record was made, rounded down; None where it does not say."""
    known = isinstance(made, int | float) and not isinstance(made, bool) and 0 <= made < TIME_S_MAX
    return int(made * 1_000) if known else None
