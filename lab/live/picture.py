"""What the page is sent of a scene: a dictionary of plain values, in the words of the glossary.

Rule 1: It only looks, and every number is one that a program read, or is summed from the customers' list.
Rule 2: A number is judged by what its Region could know when it was read, this library's like the others'; at rest by
the truth.
"""

from typing import Any

from lab.designs.design import SingleItem
from lab.live.scene import Reading, Scene
from lab.live.scripts import COUNTERS, DESIGNS, REGIONS, SETTINGS
from ledger import items
from ledger.requests import Key
from ledger.values import Lane

WORK = (
    "For ADD the cable brings one number, which overwrites what was added here meanwhile; for this library it brings "
    "the changes."
)
CUT = "What they write piles up. Nobody can know what is over there: each number is judged by what its Region can know."
CRASH = "It died before it heard the answer: the worst moment. It goes on from its checkpoint."
COMING = (
    "Everything arrives, in any order, some of it twice. This library adds it up; the last number that ADD wrote "
    "replaces what the other Region counted."
)
REST = "What is wrong now stays wrong. Move “New changes” to go on, or start over."


def picture(scene: Scene) -> dict[str, Any]:
    """The scene as it is now."""
    verdict, caption = now(scene)
    truth, names = scene.truth, {key: design.name for key, design in DESIGNS.items()}
    return {
        "now_ms": scene.now_ms,
        "controls": scene.controls.model_dump(),
        "truth": truth.value,
        "says": f"the sum of {several(truth.count, 'change')}, each once; delivered again: {truth.redelivered:,}",
        "verdict": verdict,
        "caption": caption,
        "designs": names,
        "lines": {"known": "what it can know", "truth": "truth"} | dict(reversed(names.items())),
        "regions": [_region(scene, region) for region in REGIONS],
        "cable": [_cable(scene, region) for region in REGIONS],
        "requests": list(scene.rows),
    }


def now(scene: Scene) -> tuple[str, str]:
    """One sentence on what is going on, and what it means."""
    if scene.controls.paused:
        return "Paused.", "“Step” goes on to the next request of a writer or a compactor of this library."
    if scene.resting:
        return _at_rest(scene), REST
    for region in REGIONS:
        if scene.compactor_is(region) == "crashed":
            after = _after_crash(scene, region)
            return f"The compactor of {region} crashed right after a write. {after}".strip(), CRASH
    if scene.controls.cut:
        return "The link is cut: both Regions go on counting, and neither waits for the other.", CUT
    if scene.controls.writes_per_s:
        return "Both Regions are at work, and changes are on their way between them.", WORK
    if coming := scene.on_their_way:
        again = several(scene.truth.waiting, "change")
        return f"No new changes. On their way: {several(coming, 'message')}; to be delivered again: {again}.", COMING
    return "Everything has arrived: the compactors and the readers have the last word.", COMING


def judged(scene: Scene, design: str, reading: Reading) -> tuple[str, str]:
    """A mood (exact, behind, off, wrong), and a note."""
    at_rest = scene.resting
    off = reading.value - (scene.truth.value if at_rest else reading.known)
    if off == 0 and reading.count in (None, reading.known_count):
        return "exact", "equals the truth" if at_rest else "all it can know"
    if at_rest:
        return "wrong", f"wrong for good: {signed(off)}"
    if design == "ours" and not reading.is_wrong:
        return "behind", f"true, {several(reading.behind, 'change')} behind"
    if design == "ours":
        return "wrong", f"off by {signed(off)}"
    return "off", f"{signed(off)}: lost, doubled or on its way"


def several(number: int, what: str) -> str:
    """How many of what: `1 change`, `2 changes`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def signed(number: int) -> str:
    return f"{number:+,}".replace("-", "\N{MINUS SIGN}") if number else "±0"


def _region(scene: Scene, region: str) -> dict[str, Any]:
    read = scene.readings[region]["ours"]
    counters = {}
    for design, reading in scene.readings[region].items():
        mood, note = judged(scene, design, reading)
        counters[design] = {"value": reading.value, "mood": mood, "note": note}
    return {
        "name": region,
        "know": f"can know {read.known:,}: {read.known_count:,} of {several(scene.truth.count, 'change')}",
        "counters": counters,
        "compactor": scene.compactor_is(region),
        "state": _state(scene, region),
        "samples": list(scene.samples[region]),
        "chart": scene.charts[region],
    }


def _state(scene: Scene, region: str) -> str:
    """What the compactor does, and what a crash of it changed."""
    done = scene.done[region]
    match scene.compactor_is(region):
        case "about to crash":
            return "The compactor crashes at its next write."
        case "crashed":
            return "The compactor crashed right after a write."
    work = f"Compactor: {done['folded']:,} folded, {done['settled']:,} settled, {done['cleaned']:,} cleaned."
    return f"{work} {_after_crash(scene, region)}".strip()


def _after_crash(scene: Scene, region: str) -> str:
    if not (readings := scene.since_crash.get(region)):
        return ""
    wrong = sum(reading.is_wrong for reading in readings)
    return f"Since the crash: {several(wrong, 'wrong reading')}." if wrong else "The crash changed no number."


def _at_rest(scene: Scene) -> str:
    def words(design: str) -> str:
        offs = [scene.readings[region][design].value - scene.truth.value for region in REGIONS]
        return "equals the truth" if not any(offs) else f"is wrong for good ({', '.join(map(signed, offs))})"

    return (
        f"At rest: this library {words('ours')} in both Regions, "
        f"atomic ADD {words('atomic')}, the naive merge {words('merge')}."
    )


def _cable(scene: Scene, region: str) -> dict[str, Any]:
    """What is on its way to a Region: how much, and the first of it as [number, of which design, how far]."""
    ways = scene.cable.ways(region, scene.now_ms, scene.controls.lag_ms)
    return {
        "to": region,
        "count": len(scene.world.replicas[region].inbox),
        "items": [[number, _design_of(key), far] for number, key, far in ways],
    }


def _design_of(key: Key) -> str:
    """Whose item that is."""
    if key.pk == items.delta_pk(Lane(SETTINGS.region, 0, COUNTERS["merge"])):
        return "merge"
    return "atomic" if key.pk == SingleItem.item_key(COUNTERS["atomic"]).pk else "ours"
