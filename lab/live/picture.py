"""What the page is sent of a scene: a dictionary of plain values, in the words of the glossary.

Rule 1: It only looks.
Rule 2: Numbers are those that the programs read, blocks are the items that each Region's replica holds, decoded by
`ledger.items`.
Rule 3: What is said of a number follows from the truth and from what a read knows of itself.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lab.designs.design import Sight
from lab.live.customers import COUNTER
from lab.live.scene import DESIGNS, REGIONS, SETTINGS, Scene
from ledger import items, tokens
from ledger.values import Delta, Lane
from simulator.world import Replica

BLOCKS_MAX, SEGMENTS_MAX = 18, 4  # most blocks of a place that are shown one by one: two lines of a phone


@dataclass(slots=True)
class Known:
    """What a lane's segments are known to hold: count and total by sort key, and the tokens listed."""

    sums: dict[str, tuple[int, int]] = field(default_factory=dict)
    listed: set[bytes] = field(default_factory=set)


class Painter:
    """Remembers what segments list, so that each is decoded once. One for a scene."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._known: dict[tuple[str, Lane], Known] = {}

    def picture(self) -> dict[str, Any]:
        """The scene as it is now."""
        scene = self._scene
        return {
            "now_ms": scene.now_ms,
            "controls": asdict(scene.controls),
            "truth": {"value": scene.truth.value, "count": scene.truth.count, "redelivered": scene.truth.redelivered},
            "resting": scene.resting,
            "verdict": verdict(scene),
            "regions": [self._region(region) for region in REGIONS],
            "samples": list(scene.samples),
            "requests": [asdict(row) for row in scene.requests.rows()],
        }

    def _region(self, name: str) -> dict[str, Any]:
        scene = self._scene
        replica = scene.world.replicas[name]
        return {
            "name": name,
            "counters": {d: {"value": scene.sights[name][d].value, **said(scene, name, d)} for d in DESIGNS},
            "arriving": len(replica.inbox),
            "compactor": scene.compactor_is(name),
            "done": {word: scene.done[name][word] for word in ("folded", "settled", "cleaned")},
            "lanes": [self._lane(name, replica, lane) for lane in SETTINGS.lanes_of(COUNTER)],
        }

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


def _signed(number: int) -> str:
    return f"{number:+,}".replace("-", "\N{MINUS SIGN}")


def said(scene: Scene, region: str, design: str) -> dict[str, str]:
    """What is said of a value: a mood (exact, behind, off, wrong) and a note.

    A read of ours knows of how many changes it is the sum, so it can be behind and true; if it knows as many as there
    are, or all have arrived, and it is not the truth, it is wrong.
    """
    sight: Sight = scene.sights[region][design]
    off = sight.value - scene.truth.value
    if off == 0 and sight.count in (None, scene.truth.count):
        return {"mood": "exact", "note": "equals the truth"}
    missing = scene.truth.count - sight.count if sight.count is not None else 0
    if missing > 0 and not scene.resting:
        return {"mood": "behind", "note": f"{missing} {'change' if missing == 1 else 'changes'} still on the way here"}
    if design == "ours" or scene.resting:
        return {"mood": "wrong", "note": f"wrong for good: {_signed(off)}"}
    return {"mood": "off", "note": f"{_signed(off)} against the truth"}


def verdict(scene: Scene) -> str:
    """One sentence on what is going on."""
    if scene.controls.paused:
        return "Paused: step goes on to the next request of a writer or compactor."
    if scene.controls.cut:
        return "The link is cut: both Regions go on counting, and neither waits for the other."
    if not scene.resting:
        if scene.controls.writes_per_s:
            return "Both Regions count, and changes are on their way between them."
        return "No new changes: what is on its way arrives, and the compactors finish."

    def words(design: str) -> str:
        offs = [scene.sights[region][design].value - scene.truth.value for region in REGIONS]
        return "equals the truth" if not any(offs) else f"is wrong for good ({', '.join(map(_signed, offs))})"

    return (
        f"At rest, everything was delivered: this library {words('ours')} in both Regions, "
        f"atomic ADD {words('atomic')}, the naive merge {words('merge')}."
    )
