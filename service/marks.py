"""The marks: which lanes of a Region have something to do, and when. A mark is a hint; losing one costs delay only.

Rule 1: A mark is written in its lane's own Region alone.
Rule 2: A touch only ever asks for an earlier visit.
Rule 3: A visit forgets the touches it has served only if the last of them is older than QUIET_MS and none came
meanwhile.
Rule 4: A mark that nobody can read is due now. Formats: docs/data-model.md. Why each rule is safe: docs/compaction.md.
"""

import hashlib
import re
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from ledger.errors import InvalidInput
from ledger.requests import Item, Key
from ledger.values import Lane

BUCKETS = 8
TOUCH_EVERY_MS = 5_000
"""A process that touched a lane this short ago need not touch it again."""

QUIET_MS = 15_000
"""Above TOUCH_EVERY_MS by more than the clocks of a Region's functions differ."""

LEASE_MS = 300_000
"""How long a planned lane is left to the work queue before it is planned again."""


@dataclass(frozen=True, slots=True)
class Mark:
    """due_ms: a delta came; visit then. next_ms: the last visit planned this. touched_ms: when the last delta came.

    held_ms: not planned again before (a lease of the work queue, or a damaged lane). late_ms: when a late delta came.
    """

    lane: Lane
    due_ms: int | None = None
    next_ms: int | None = None
    touched_ms: int | None = None
    held_ms: int | None = None
    late_ms: int | None = None

    @property
    def wake_ms(self) -> int:
        """When the lane is, or was, due."""
        return min((ms for ms in (self.due_ms, self.next_ms) if ms is not None), default=0)

    def is_due(self, now_ms: int) -> bool:
        return self.wake_ms <= now_ms and (self.held_ms is None or self.held_ms <= now_ms)

    def is_quiet(self, began_ms: int) -> bool:
        """Whether a visit that began then has seen every delta whose touch was spared because of the last touch."""
        return self.touched_ms is None or began_ms - self.touched_ms > QUIET_MS


def bucket_pk(region: str, bucket: int) -> str:
    return f"mark#{region}#{bucket}"


def buckets_of(region: str) -> tuple[str, ...]:
    """The partition keys of all marks of a Region."""
    return tuple(bucket_pk(region, bucket) for bucket in range(BUCKETS))


def key_of(lane: Lane) -> Key:
    bucket = hashlib.sha256(str(lane).encode()).digest()[0] % BUCKETS
    return Key(bucket_pk(lane.region, bucket), f"{lane.shard}#{lane.counter}")


def mark_of(item: Item) -> Mark | None:
    """The mark that an item is; None when its key names no lane. Attributes that cannot be read are as if absent."""
    region = item["pk"]["S"].split("#")[1]
    shard, _, counter = item["sk"]["S"].partition("#")
    if not re.fullmatch(r"0|[1-9][0-9]{0,5}", shard):
        return None
    try:
        lane = Lane(region, int(shard), counter)
    except InvalidInput:
        return None
    names = ("due_ms", "next_ms", "touched_ms", "held_ms", "late_ms")
    return Mark(lane, **{name: _milliseconds(item, name) for name in names})


def _milliseconds(item: Item, name: str) -> int | None:
    text = item.get(name, {}).get("N")
    return int(text) if isinstance(text, str) and re.fullmatch(r"[0-9]{1,15}", text) else None


# -- what a program asks of the marks, beside ledger.requests ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Touch:
    """A delta came: due at `due_ms` unless it is due already. Answer: None."""

    lane: Lane
    now_ms: int
    due_ms: int
    late: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """Hold a mark until `held_ms`, if it is as it was seen. Answer: whether it was."""

    seen: Mark
    held_ms: int


@dataclass(frozen=True, slots=True)
class Rest:
    """A visit served all touches up to `touched_ms`: due next at `next_ms`, or never (the mark is removed), if none
    came since. Answer: whether none came; otherwise nothing was written."""

    lane: Lane
    touched_ms: int | None
    next_ms: int | None


@dataclass(frozen=True, slots=True)
class Again:
    """A visit was made, and touches may be unserved: due at `due_ms`, and at `next_ms` if given. Answer: None."""

    lane: Lane
    due_ms: int
    next_ms: int | None


@dataclass(frozen=True, slots=True)
class Hold:
    """Do not plan the lane before `held_ms`, whatever touches it. Answer: None."""

    lane: Lane
    held_ms: int


MarkRequest = Touch | Claim | Rest | Again | Hold
Steps = Generator[Any, Any, Any]


def after_visit(lane: Lane, seen: Mark | None, *, began_ms: int, again_ms: int, next_ms: int | None) -> Steps:
    """Write what a visit that began at `began_ms` leaves; `seen` was read, strongly, before it. Raises TableErrors."""
    if seen is None or seen.is_quiet(began_ms):
        rests: bool = yield Rest(lane, seen.touched_ms if seen else None, next_ms)
        if rests:
            return
    yield Again(lane, again_ms, next_ms)
