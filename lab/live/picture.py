"""What the page is sent of a scene: a dictionary of plain values, in the words of the glossary.

Rule 1: It only looks, and every number is one that a program read, or is summed from the customers'
list.
Rule 2: A number is judged by what its Region had received when it was read, this library's like the
others'; at rest by the truth, and then each design has a verdict.
"""

import math
from typing import Any

from lab.designs.design import SingleItem
from lab.live.scene import Reading, Scene
from lab.live.scripts import (
    ADVANCE_SEATS,
    COUNTERS,
    DESIGNS,
    REGIONS,
    SALE,
    SEATS,
    SELLERS,
    SETTINGS,
)
from ledger.core import items
from ledger.core.requests import Key
from ledger.core.values import Lane

CALM = (
    "Every item crosses the cable at once, and no answer is lost. So all three counters are right, "
    "and nothing is oversold. Now cut the link."
)
WORK = (
    "This library sends each change over the cable. ADD sends one total, which replaces what the "
    "other Region added meanwhile. Now cut the link."
)
CUT = (
    "The last seats are on sale in both. Neither Region hears what the other one sells, so each "
    "number is compared with the changes that its Region has received. Now heal the link."
)
HELD_UP = "The link is cut, so a part of the changes cannot arrive. Heal it, and the verdict comes."
CRASH = "It died before the answer came, which is the worst moment. It goes on from its checkpoint."
COMING = (
    "Everything arrives, in any order, some of it twice. This library adds up the changes. The "
    "last total that ADD wrote replaces what the other Region counted."
)

ATOMIC = {SingleItem.item_key(counter).pk for counter in (COUNTERS["atomic"], SALE)}


def picture(scene: Scene) -> dict[str, Any]:
    """The scene as it is now."""
    verdict, caption = now(scene)
    truth, names = scene.truth, {key: design.name for key, design in DESIGNS.items()}
    return {
        "now_ms": scene.now_ms,
        "controls": scene.controls.model_dump(),
        "truth": truth.value,
        "says": f"{several(truth.count, 'change')}; {truth.redelivered:,} came again",
        "verdict": verdict,
        "caption": caption,
        "step": _step(scene),
        "wait": _wait(scene),
        "verdicts": [_verdict(scene, design) for design in DESIGNS] if scene.resting else [],
        "sale": {
            "seats": SEATS,
            "says": "" if scene.was_cut else f"{SEATS - ADVANCE_SEATS} of them after the cut",
            "sellers": {design: _seller(scene, design) for design in SELLERS},
        },
        "designs": names,
        "lines": {"received": "what it has received", "truth": "truth"}
        | dict(reversed(names.items())),
        "regions": [_region(scene, region) for region in REGIONS],
        "cable": [_cable(scene, region) for region in REGIONS],
        "requests": list(scene.rows),
    }


def now(scene: Scene) -> tuple[str, str]:
    """One sentence on what is going on, and what it means."""
    if scene.controls.paused:
        return (
            "Paused.",
            "“Step” goes on to the next request of a writer or a compactor of this library.",
        )
    if scene.resting:
        is_right = all(_verdict(scene, design)["mood"] == "exact" for design in DESIGNS)
        wrong = "Nothing is wrong." if is_right else "What is wrong now stays wrong."
        return f"At rest. {wrong}", ""
    coming = "" if scene.is_calm else COMING
    for region in REGIONS:
        if scene.compactor_is(region) == "crashed":
            after = _after_crash(scene, region)
            return f"The compactor of {region} crashed right after a write. {after}".strip(), CRASH
    if scene.controls.cut and scene.controls.writes_per_s:
        return "The link is cut. Both Regions go on selling, and neither waits.", CUT
    if scene.controls.cut:
        return "No new changes, and the link is cut.", HELD_UP
    if scene.controls.writes_per_s and scene.was_cut:
        return "The link is back, and what piled up comes over.", f"{COMING} Now let it rest."
    if scene.controls.writes_per_s:
        return "Two Regions count the tickets that they sell.", CALM if scene.is_calm else WORK
    if scene.customers_wait:
        return "No new changes. What is on its way arrives.", coming
    return (
        "Every customer has an answer. The compactors finish, and the readers look once more.",
        coming,
    )


def judged(scene: Scene, design: str, reading: Reading) -> tuple[str, str]:
    """A mood (exact, behind, off, wrong), and a note."""
    at_rest = scene.resting
    off = reading.value - (scene.truth.value if at_rest else reading.received)
    if off == 0 and reading.count in (None, reading.received_count):
        return "exact", "the truth" if at_rest else "all it received"
    if at_rest:
        return "wrong", f"{signed(off)} for good"
    if design == "ours" and not reading.is_wrong:
        return "behind", f"{several(reading.behind, 'change')} behind"
    return "wrong" if design == "ours" else "off", f"off by {signed(off)}"


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
        "received": f"has received {read.received:,}",
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
    work = (
        f"Compacted {several(done['folded'], 'change')}, added {done['settled']:,} late, deleted "
        f"{done['cleaned']:,} already counted."
    )
    return f"{work} {_after_crash(scene, region)}".strip()


def _after_crash(scene: Scene, region: str) -> str:
    if not (readings := scene.since_crash.get(region)):
        return ""
    wrong = sum(reading.is_wrong for reading in readings)
    return (
        f"Since the crash: {several(wrong, 'wrong reading')}."
        if wrong
        else "The crash changed no number."
    )


def _step(scene: Scene) -> int:
    """How far a visitor has come: counting, cut, healed, coming to rest, at rest."""
    if scene.resting:
        return 4
    if not scene.controls.writes_per_s:
        return 3
    return 1 if scene.controls.cut else 2 * scene.was_cut


def _wait(scene: Scene) -> str:
    """How long until the verdict, once customers stopped and the link is there."""
    controls = scene.controls
    if controls.writes_per_s or controls.cut or controls.paused or scene.resting:
        return ""
    return f"Verdict in at most {math.ceil(scene.rests_in_ms / 1_000)} s"


def _verdict(scene: Scene, design: str) -> dict[str, Any]:
    """At rest: what both Regions read, and whether it is the truth."""
    truth, values = (
        scene.truth.value,
        sorted({scene.readings[region][design].value for region in REGIONS}),
    )
    is_right = values == [truth]
    return {
        "design": design,
        "mood": "exact" if is_right else "wrong",
        "reads": f"{truth:,} = {truth:,}"
        if is_right
        else " / ".join(f"{value:,}" for value in values),
        "note": "the truth" if is_right else ", ".join(signed(value - truth) for value in values),
    }


def _seller(scene: Scene, design: str) -> dict[str, Any]:
    """How many seats a design has sold, and to how many too many; or how many customers wait, or
    were refused.
    """
    answers = scene.answers[design].values()
    sold, waiting = sum(answers), len(scene.buyers) - len(answers)
    if sold > SEATS:
        mood, note = "wrong", f"{sold - SEATS:,} without a seat"
    elif sold < SEATS:
        mood, note = "behind", f"{waiting:,} wait" if waiting else f"{SEATS - sold:,} left"
    else:
        mood, note = (
            "exact",
            f"{len(answers) - sold:,} refused" if len(answers) > sold else "sold out",
        )
    return {"name": SELLERS[design].name, "sold": sold, "mood": mood, "note": note}


def _cable(scene: Scene, region: str) -> dict[str, Any]:
    """What is on its way to a Region: how much, and the first of it as [number, of which design,
    how far].
    """
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
    return "atomic" if key.pk in ATOMIC else "ours"
