"""What a page of the directory shows of limited counters.

Rule 1: The note of a hold whose time has been over for an hour is counted, a page of notes of a lane at most.
Rule 2: A gate in a lane that no process of these settings asks is reported: it is in no value, and nobody can take what
it has left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ledger.cost import item_bytes
from ledger.gate.items import gate_key, hold_pk, holds_until
from ledger.requests import GetMany, Instant, Item, Now, Page, Program, Query
from ledger.settings import Settings
from ledger.values import Lane

OVERDUE_MS = 3_600_000
GATES_READ = 100
"""In one request."""


@dataclass(slots=True)
class Gates:
    """overdue: notes of holds that should have ended an hour ago. largest: bytes of the largest gate; 0: none."""

    overdue: int = 0
    largest: int = 0
    unasked: list[Lane] = field(default_factory=list)


def look(found: Gates, lanes: Sequence[Lane], settings: Settings) -> Program[None]:
    """Add what these lanes show. Raises the TableErrors."""
    now: Instant = yield Now()
    for start in range(0, len(lanes), GATES_READ):
        some = lanes[start : start + GATES_READ]
        gates: tuple[Item | None, ...] = yield GetMany(tuple(map(gate_key, some)), consistent=False)
        for lane, gate in zip(some, gates, strict=True):
            if gate is None:
                continue
            found.largest = max(found.largest, item_bytes(gate))
            if not _asks(settings, lane):
                found.unasked.append(lane)
            notes: Page = yield Query(hold_pk(lane), None, holds_until(now.wall_ms - OVERDUE_MS), None, False)
            found.overdue += len(notes.items)


def _asks(settings: Settings, lane: Lane) -> bool:
    known = lane.region in settings.regions and lane.shard < settings.shards_of(lane.counter)
    return known and settings.limit_of(lane.counter) is not None
