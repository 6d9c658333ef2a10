"""What a page of the table's keys shows of limited counters.

Rule 1: The note of a hold whose time has been over for an hour is told by its key; this Region's alone are counted, so
that no note is counted twice.
Rule 2: A gate in a lane that no process of these settings asks is told by its key: it is in no value, and nobody can
take what it has left.
Rule 3: Of a page's gates of this Region at most so many are read, for their size, and others in each run.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ledger.errors import InvalidInput
from ledger.gate.items import gate_key, holds_until
from ledger.requests import GetMany, Instant, Item, Key, Now
from ledger.settings import Settings
from ledger.units import item_bytes
from ledger.values import Lane

OVERDUE_MS = 3_600_000
GATES_READ = 100
"""Of a page, in one request."""


@dataclass(slots=True)
class Gates:
    """overdue: notes of holds that should have ended an hour ago. largest: bytes of the largest gate; 0: none."""

    overdue: int = 0
    largest: int = 0
    unasked: set[Lane] = field(default_factory=set)


def look(found: Gates, keys: Sequence[Key], settings: Settings) -> Generator[Any, Any, None]:
    """Add what a page shows. Raises the TableErrors."""
    lanes = _lanes(keys)
    now: Instant = yield Now()
    notes, over = f"hold#{settings.region}#", holds_until(now.wall_ms - OVERDUE_MS)
    found.overdue += sum(key.pk.startswith(notes) and key.sk < over for key in keys)
    found.unasked.update(lane for lane in lanes if not _asks(settings, lane))
    ours = [gate_key(lane) for lane in lanes if lane.region == settings.region]
    if step := -(-len(ours) // GATES_READ):
        some = tuple(ours[now.wall_ms // 1_000 % step :: step])
        gates: tuple[Item | None, ...] = yield GetMany(some, consistent=False)
        found.largest = max(found.largest, *(item_bytes(item) for item in gates if item is not None), 0)


def _lanes(keys: Sequence[Key]) -> list[Lane]:
    """Those of the gates among the keys, in order."""
    found = []
    for key in keys:
        kind, _, lane = key.pk.partition("#")
        if kind == "gate":
            try:
                found.append(Lane.parse(lane))
            except InvalidInput:
                continue
    return found


def _asks(settings: Settings, lane: Lane) -> bool:
    known = lane.region in settings.regions and lane.shard < settings.shards_of(lane.counter)
    return known and settings.limit_of(lane.counter) is not None
