"""What a batch of the table's stream says of the lanes of a Region.

Rule 1: Whatever a record holds, it fails nothing: what is no new delta, pack or gate of this Region, and nothing by
which a threshold may be crossed, is counted and passed by.
Rule 2: An item came late when the record was made more than half the allowed lateness after the item's lowest token,
the other half being for a time that AWS rounds down to the second and calls approximate, and for clocks. Without that
time, or with content that nobody can read, it came late.
Rule 3: An item that came by replication is as good as one put here.
Rule 4: How far a ringing item's highest token is ahead of its record is told, beyond what a ring waits for in any case.
Rule 5: Of a counter whose thresholds this Region tells of, every item that its value is read from asks for an
evaluation, of whatever Region: deltas and packs, checkpoints (a stray that was settled, a rebuild) and gates. So does
the item of a crossing, because the value may have changed between its read and its write.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ledger import items, tokens
from ledger.entries import ENTRY, time_ms
from ledger.gate import items as gates
from ledger.requests import Key
from ledger.settings import Settings
from ledger.values import Lane
from service.ring.draw import rings
from service.work import KEY_MAX
from thresholds import items as crossings

TIME_S_MAX = 10**11
"""No time of a stream record is this far from 1970, in seconds."""

ROUNDED_MS = 1_000
"""ApproximateCreationDateTime is rounded down to the second:
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_StreamRecord.html"""

MARGIN_S = 5
"""Beyond what a message waits for: the clocks of writers may be off by so much."""


@dataclass(slots=True)
class Arrived:
    """What a batch says of one lane. sequence: of its first record, and where that stands in the batch. late: the sort
    keys of what came late. rung: whether an item rings. ahead_s: how far the furthest one is ahead that rings and is
    further ahead than MARGIN_S; else 0."""

    place: int
    sequence: str
    late: list[str] = field(default_factory=list)
    rung: bool = False
    ahead_s: int = 0

    @property
    def rings_ahead_s(self) -> list[int]:
        """A ring for each: how far ahead what it stands for is, the furthest first."""
        return [self.ahead_s] * (self.ahead_s > 0) + [0] * self.rung


class Batch(NamedTuple):
    """lanes: what came, by lane, in the order of the stream. ignored: how many records were none of ours.

    counters: what asks for an evaluation, by the counter's first lane of this Region, which need not have changes.
    """

    lanes: dict[Lane, Arrived]
    counters: dict[Lane, Arrived]
    ignored: int

    def first_of(self, lanes: Collection[Lane]) -> Arrived:
        """The first record of any of these."""
        every = [some[lane] for some in (self.lanes, self.counters) for lane in lanes if lane in some]
        return min(every, key=lambda seen: seen.place)


def arrived(records: Iterable[Any], settings: Settings) -> Batch:
    lanes: dict[Lane, Arrived] = {}
    counters: dict[Lane, Arrived] = {}
    ignored = 0
    for place, record in enumerate(records):
        change, lane = _lane_of(record, settings.region)
        counter = _counter_of(record, settings) if settings.tells else None
        if counter is not None:
            asking = Lane(settings.region, 0, counter)
            counters.setdefault(asking, Arrived(place, str(record["dynamodb"].get("SequenceNumber", ""))))
        if lane is None:
            ignored += counter is None
            continue
        seen = lanes.setdefault(lane, Arrived(place, str(change.get("SequenceNumber", ""))))
        key = Key(change["Keys"]["pk"]["S"], change["Keys"]["sk"]["S"])
        if key == gates.gate_key(lane):
            continue
        held = _held(key.sk, change.get("NewImage"))
        made_ms = _made_ms(change.get("ApproximateCreationDateTime"))
        if made_ms is None or held is None or _is_late(made_ms, held.lowest_ms, settings.allowed_lateness_ms):
            seen.late.append(key.sk)
        if rings(key, settings.fold_min if held is None else held.changes, settings.fold_min):
            ahead_s = 0 if made_ms is None or held is None else -(-(held.highest_ms - made_ms) // 1_000)
            if ahead_s > MARGIN_S:
                seen.ahead_s = max(seen.ahead_s, ahead_s)
            else:
                seen.rung = True
    return Batch(lanes, counters, ignored)


def _lane_of(record: Any, region: str) -> tuple[Mapping[str, Any], Lane | None]:
    """The lane of a new delta, pack or gate of this Region, and the record's change."""
    match record:
        case {"eventName": "INSERT", "dynamodb": {"Keys": {"pk": {"S": str(pk)}, "sk": {"S": str(sk)}}} as change}:
            key = Key(pk, sk)
        case _:
            return {}, None
    lane = gates.lane_of(key)
    if lane is None and len(sk) <= KEY_MAX and items.highest_of(sk):
        found = items.lane_of(pk)
        lane = found[1] if found is not None and found[0] == "delta" else None
    return change, lane if lane is not None and lane.region == region else None


def _counter_of(record: Any, settings: Settings) -> str | None:
    """The counter whose thresholds this record asks to be evaluated."""
    match record:
        case {"eventName": "INSERT" | "MODIFY", "dynamodb": {"Keys": {"pk": {"S": str(pk)}, "sk": {"S": str(sk)}}}}:
            key = Key(pk, sk)
        case _:
            return None
    lane = gates.lane_of(key)
    found = items.lane_of(pk)
    if found is not None and (found[0] == "delta" or key == items.checkpoint_key(found[1])):
        lane = found[1]
    counter = lane.counter if lane is not None else crossings.counter_of(pk, settings.region)
    return counter if counter is not None and settings.told_here(counter) else None


class Held(NamedTuple):
    """What a new delta or pack holds: how many changes, and the times of its lowest and its highest token."""

    changes: int
    lowest_ms: int
    highest_ms: int


def _held(sk: str, image: Any) -> Held | None:
    """None where nobody can tell."""
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
    """When the record was made, rounded down; None where nobody can tell."""
    known = isinstance(made, int | float) and not isinstance(made, bool) and 0 <= made < TIME_S_MAX
    return int(made * 1_000) if known else None


def _is_late(made_ms: int, lowest_ms: int, allowed_lateness_ms: int) -> bool:
    return made_ms + ROUNDED_MS - lowest_ms > allowed_lateness_ms / 2
