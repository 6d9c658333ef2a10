"""What the page is sent of the lanes of a counter: the items that each Region's replica holds.

Rule 1: It only looks, and decodes by `ledger.items`.
Rule 2: What a segment lists is remembered, so that each is decoded once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ledger import items, tokens
from ledger.values import Delta, Lane
from simulator.world import Replica, World

BLOCKS_MAX, SEGMENTS_MAX = 18, 4  # most blocks of a place that are shown one by one: two lines of a phone


@dataclass(slots=True)
class Known:
    """What a lane's segments are known to hold: count and total by sort key, and the tokens listed."""

    sums: dict[str, tuple[int, int]] = field(default_factory=dict)
    listed: set[bytes] = field(default_factory=set)


class LanesPainter:
    """One for a scene."""

    def __init__(self, world: World, lanes: Sequence[Lane]) -> None:
        self._world, self._lanes = world, lanes
        self._known: dict[tuple[str, Lane], Known] = {}

    def lanes(self, region: str) -> list[dict[str, Any]]:
        """Every lane as a Region holds it."""
        return [self._lane(region, self._world.replicas[region], lane) for lane in self._lanes]

    def _lane(self, region: str, replica: Replica, lane: Lane) -> dict[str, Any]:
        """A lane's items as one Region holds them."""
        item = replica.item(items.checkpoint_key(lane))
        checkpoint = items.checkpoint_of(lane, item) if item else None
        segments = self._segments(region, replica, lane)
        places: dict[str, list[Delta]] = {"tail": [], "folded": []}
        if region == lane.region:  # elsewhere nobody can tell a stray from a delta whose segment has not arrived
            places["stray"] = []
        for delta in _deltas(replica, lane):
            if checkpoint is None or delta.token > checkpoint.watermark:
                places["tail"].append(delta)
            elif "stray" in places and tokens.to_bytes(delta.token) not in segments.listed:
                places["stray"].append(delta)
            else:
                places["folded"].append(delta)
        newest = sorted(segments.sums, key=lambda sk: sk[-10:])[-SEGMENTS_MAX:]
        return {
            "region": lane.region,
            "total": checkpoint.total if checkpoint else 0,
            "count": checkpoint.count if checkpoint else 0,
            "version": checkpoint.version if checkpoint else 0,
            "places": {place: _blocks(deltas) for place, deltas in places.items()},
            "segments": len(segments.sums),
            "newest": [[sk[-10:].lstrip("0"), *segments.sums[sk]] for sk in newest],
        }

    def _segments(self, region: str, replica: Replica, lane: Lane) -> Known:
        """The segments of a lane that a Region holds. They never change."""
        known = self._known.setdefault((region, lane), Known())
        for sk, cell in replica.cells.get(items.fold_pk(lane), {}).items():
            if cell.item and sk not in known.sums and items.SEGMENTS_FROM < sk < items.SEGMENTS_UPTO:
                segment = items.segment_of(lane, cell.item)
                known.sums[sk] = len(segment), segment.entries.total
                known.listed.update(token for token, _ in segment)
        return known


def _deltas(replica: Replica, lane: Lane) -> list[Delta]:
    cells = replica.cells.get(items.delta_pk(lane), {})
    entries = (items.entries_of(lane, item) for sk in sorted(cells) if (item := cells[sk].item))
    return [Delta(lane, tokens.from_bytes(token), change) for each in entries for token, change in each]


def _blocks(deltas: Sequence[Delta]) -> dict[str, Any]:
    """How many there are, and the newest of them: [name, change]."""
    return {"count": len(deltas), "blocks": [[d.token[-8:], d.change] for d in deltas[-BLOCKS_MAX:]]}
