"""What the page is sent of a story: a dictionary of plain values, in the words of the glossary.

Rule 1: It only looks.
Rule 2: Numbers are those that the programs read.
Rule 3: What is said of a number follows from the truth and from what a read knows of itself.
"""

from dataclasses import asdict
from typing import Any, ClassVar

from lab.live import scripts
from lab.live.scene import REGIONS, REST_STEPS, Scene
from lab.live.stories import STORIES, Teller
from lab.live.words import several
from ledger import items
from ledger.requests import Key


class Painter:
    """Paints the scene of a story. What the stories differ in is filled in by their own painters."""

    CUT: ClassVar[str]
    """What is going on while the link is cut."""

    def __init__(self, teller: Teller) -> None:
        self._teller = teller

    @property
    def scene(self) -> Scene:
        return self._teller.scene

    def picture(self) -> dict[str, Any]:
        """The story and its scene as they are now."""
        scene, teller = self.scene, self._teller
        return {
            "stories": [[story.name, story.title] for story in STORIES.values()],
            "story": {
                "name": teller.story.name,
                "title": teller.story.title,
                "seed": teller.seed,
                "steps": [step.name for step in teller.story.steps],
                "at": teller.at,
                "caption": teller.step.caption,
                "by_itself": teller.by_itself,
                "over": teller.over,
            },
            "now_ms": scene.now_ms,
            "controls": asdict(scene.controls),
            "resting": scene.resting,
            "head": self.head(),
            "verdict": self.verdict(),
            "designs": dict(scene.DESIGNS),
            "lines": self.lines(),
            "regions": [{"name": region, **self.region(region)} for region in REGIONS],
            "cable": [self._cable(region) for region in REGIONS],
            "samples": list(scene.samples),
            "requests": [asdict(row) for row in scene.requests.rows()],
        }

    def head(self) -> dict[str, Any]:
        """The number that everything is held against: its label, value and what it is."""
        raise NotImplementedError

    def lines(self) -> dict[str, str]:
        """What the charts draw, with the name of each line, from the back to the front."""
        raise NotImplementedError

    def region(self, region: str) -> dict[str, Any]:
        """know, counters, state, crash (running, about to crash, crashed; None: nobody can), columns, lanes."""
        raise NotImplementedError

    def at_rest(self) -> str:
        """One sentence on what is right and what is wrong for good."""
        raise NotImplementedError

    def news(self) -> str:
        """One sentence or two on what has just happened, or nothing."""
        return ""

    def verdict(self) -> str:
        """One sentence on what is going on."""
        scene = self.scene
        if scene.controls.paused:
            return "Paused: step goes on to the next request of a writer or compactor."
        if not scene.resting and (news := self.news()):
            return news
        if scene.controls.cut:
            return self.CUT
        if scene.resting:
            return self.at_rest()
        if scene.controls.writes_per_s:
            return "Both Regions are at work, and changes are on their way between them."
        if scene.on_their_way:
            again = f", {several(scene.truth.waiting, 'change')} to be delivered again" if scene.truth.waiting else ""
            return f"No new changes. Still to come: {several(scene.on_their_way, 'item or request')}{again}."
        share = scene.calm_steps * 100 // REST_STEPS
        return f"No new changes, and nothing on its way: the compactors and readers finish, {share} %."

    def _cable(self, region: str) -> dict[str, Any]:
        """What is on its way to a Region: how much, and the first of it as [number, of which design, how far]."""
        scene = self.scene
        ways = scene.cable.ways(region, scene.now_ms, scene.controls.lag_ms)
        return {
            "to": region,
            "count": len(scene.world.replicas[region].inbox),
            "items": [[number, design_of(key), far] for number, key, far in ways],
        }


def design_of(key: Key) -> str:
    """Whose item that is."""
    if key.pk == items.delta_pk(scripts.NAIVE_LANE):
        return "merge"
    return "atomic" if key.sk == scripts.ATOMIC.item_key("").sk else "ours"
