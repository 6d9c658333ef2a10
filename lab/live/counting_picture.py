"""What the page is sent of the scene of a counter.

Rule 1: A number is judged by what its Region could know when it was read, this library's like the others'.
Rule 2: At rest it is judged by the truth.
"""

from typing import Any, ClassVar

from lab.live.counting import COUNTER, Counting
from lab.live.lanes_picture import LanesPainter
from lab.live.picture import Painter
from lab.live.readings import Reading, Why
from lab.live.scene import REGIONS
from lab.live.stories import Teller
from lab.live.words import several, signed


class CountingPainter(Painter):
    CUT: ClassVar = "The link is cut: both Regions go on counting, and neither waits for the other."

    def __init__(self, teller: Teller) -> None:
        super().__init__(teller)
        assert isinstance(teller.scene, Counting)
        self._counting = teller.scene
        self._lanes = LanesPainter(teller.scene.world, teller.scene.SETTINGS.lanes_of(COUNTER))

    def head(self) -> dict[str, Any]:
        truth = self._counting.truth
        says = f"the sum of {several(truth.count, 'change')}, each once; delivered again: {truth.redelivered:,}"
        return {"label": "The truth", "value": truth.value, "says": says}

    def lines(self) -> dict[str, str]:
        return {"known": "what it can know", "truth": "truth"} | dict(reversed(self._counting.DESIGNS.items()))

    def region(self, region: str) -> dict[str, Any]:
        scene = self._counting
        read = scene.readings[region]["ours"]
        known, changes = read.known_count, several(scene.truth.count, "change")
        columns = ["known", *scene.DESIGNS]
        first = 2 + REGIONS.index(region) * len(columns)
        return {
            "know": {
                "value": read.known,
                "says": f"{known:,} of {changes}" if known < scene.truth.count else f"all of {changes}",
            },
            "counters": {
                design: {"value": reading.value, **judged(scene, design, reading)}
                for design, reading in scene.readings[region].items()
            },
            "crash": scene.compactor_is(region),
            "state": self._state(region),
            "columns": {"truth": 1} | {name: first + n for n, name in enumerate(columns)},
            "lanes": self._lanes.lanes(region),
        }

    def _state(self, region: str) -> str:
        """What the compactor does, and what a crash of it changed."""
        scene = self._counting
        state, done = scene.compactor_is(region), scene.done[region]
        if state == "about to crash":
            return "The compactor crashes at its next write."
        if state == "crashed":
            return "The compactor crashed right after a write."
        work = f"Compactor: {done['folded']:,} folded, {done['settled']:,} settled, {done['cleaned']:,} cleaned."
        return f"{work} {self._after_crash(region)}".strip()

    def _after_crash(self, region: str) -> str:
        readings = self._counting.since_crash.get(region)
        if not readings:
            return ""
        wrong = sum(is_wrong(reading) for reading in readings)
        return f"Since the crash: {several(wrong, 'wrong reading')}." if wrong else "The crash changed no number."

    def news(self) -> str:
        """What a crash changed, while it is the matter."""
        scene = self._counting
        for region in REGIONS:
            if scene.compactor_is(region) == "crashed":
                return f"The compactor of {region} crashed right after a write. {self._after_crash(region)}".strip()
        told = self._teller.step.name == "crash" and self._after_crash(REGIONS[0])
        return f"The compactor of {REGIONS[0]} is back, from its checkpoint. {told}" if told else ""

    def at_rest(self) -> str:
        scene = self._counting

        def words(design: str) -> str:
            offs = [scene.readings[region][design].value - scene.truth.value for region in REGIONS]
            return "equals the truth" if not any(offs) else f"is wrong for good ({', '.join(map(signed, offs))})"

        return (
            f"At rest: this library {words('ours')} in both Regions, "
            f"atomic ADD {words('atomic')}, the naive merge {words('merge')}."
        )


def is_wrong(reading: Reading) -> bool:
    """Of a reading that knows of how many changes it is the sum: it is behind and true, or it is wrong."""
    behind = reading.known_count - (reading.count or 0)
    return behind < 0 or (behind == 0 and reading.off != 0)


def judged(scene: Counting, design: str, reading: Reading) -> dict[str, Any]:
    """A mood (exact, behind, off, wrong), a note, and the reasons."""
    at_rest = scene.resting
    off = reading.value - scene.truth.value if at_rest else reading.off
    if off == 0 and reading.count in (None, reading.known_count):
        return {"mood": "exact", "note": "equals the truth" if at_rest else "all it can know", "why": []}
    if design == "ours" and not at_rest and not is_wrong(reading):
        behind = reading.known_count - (reading.count or 0)
        return {"mood": "behind", "note": f"true, {several(behind, 'change')} behind", "why": []}
    why = [said_of(design, each) for each in reading.why]
    if at_rest:
        return {"mood": "wrong", "note": f"wrong for good: {signed(off)}", "why": why}
    if reading.why and {each.kind for each in reading.why} <= {"coming", "early"}:
        return {"mood": "behind", "note": "nothing lost or doubled", "why": why}
    return {"mood": "wrong" if design == "ours" else "off", "note": f"off by {signed(off)}", "why": why}


SAID = {
    "atomic": {
        "overwritten": ("add was overwritten", "adds were overwritten"),
        "again": ("answer was lost, and the add sent again", "answers were lost, and the adds sent again"),
        "coming": ("add is on its way", "adds are on their way"),
        "early": ("add is ahead of its change", "adds are ahead of their changes"),
    },
    "merge": {
        "overwritten": ("change went with an overwritten total", "changes went with an overwritten total"),
        "again": ("change was merged twice", "changes were merged twice"),
        "coming": ("change is on its way", "changes are on their way"),
        "early": ("change is here early, in a total", "changes are here early, in a total"),
    },
}


def said_of(design: str, why: Why) -> str:
    """The amount, and what came of how many changes."""
    one, many = SAID[design][why.kind]
    return f"{signed(why.amount)}: {why.changes:,} {one if why.changes == 1 else many}"
