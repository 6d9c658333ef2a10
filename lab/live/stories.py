"""The stories of the live page: captioned steps, each of which does what a visitor could do with the controls.

Rule 1: A caption says what happens and why, and no number: numbers are read from the scene.
Rule 2: A step takes a time of the scene, or until something is the case; nothing of it depends on the clock.
Rule 3: The first step is told in a new scene: what was sold out, or is wrong for good, would show nothing.
Rule 4: Whoever moves a control that a step sets takes over: the story goes on only when it is asked to.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lab.live.controls import BadControl
from lab.live.counting import Counting
from lab.live.scene import REGIONS, Scene
from lab.live.selling import Selling

SEED_MAX = 2**31 - 1
CRASH_MS = 9_000  # time enough to read what the crash did not change


@dataclass(frozen=True, slots=True)
class Step:
    """does: to the scene. is_over: told the scene and for how many ms the step has lasted."""

    name: str
    caption: str
    does: Callable[[Any], None]
    is_over: Callable[[Any, int], bool]


@dataclass(frozen=True, slots=True)
class Story:
    name: str
    title: str
    scene: type[Scene]
    steps: tuple[Step, ...]


def sets(**controls: int | bool) -> Callable[[Scene], None]:
    return lambda scene: scene.set(controls)


def lasts(ms: int) -> Callable[[Scene, int], bool]:
    return lambda scene, since_ms: since_ms >= ms


def rests(scene: Scene, since_ms: int) -> bool:
    return scene.resting


def crashes(scene: Scene) -> None:
    scene.crash(REGIONS[0])


def is_back(scene: Counting, since_ms: int) -> bool:
    return since_ms >= CRASH_MS and scene.compactor_is(REGIONS[0]) == "running"


COUNTER = Story(
    "counter",
    "Counting",
    Counting,
    (
        Step(
            "count",
            "Both Regions sell tickets. For ADD the cable brings one number, which overwrites what was added here "
            "meanwhile; for this library it brings the changes.",
            sets(cut=False, writes_per_s=6),
            lasts(9_000),
        ),
        Step(
            "cut",
            "The cable is cut, both Regions go on, and what they write piles up. Nobody can know what is over "
            "there: each number is judged by what its Region can know.",
            sets(cut=True, writes_per_s=6),
            lasts(9_000),
        ),
        Step(
            "crash",
            "The compactor of eu-west-1 dies right after a write, before it hears the answer: the worst moment. "
            "It goes on from its checkpoint. Does any number change?",
            crashes,
            is_back,
        ),
        Step(
            "heal",
            "The cable is whole, and everything arrives, in any order. This library adds it up; the last number that "
            "ADD wrote replaces what the other Region counted.",
            sets(cut=False, writes_per_s=6),
            lasts(9_000),
        ),
        Step(
            "rest",
            "Nobody buys any more. Once everything is delivered, even what comes a second time, what is wrong "
            "stays wrong. Press a step or a control to go on.",
            Scene.come_to_rest,
            rests,
        ),
    ),
)

SALE = Story(
    "sale",
    "A flash sale",
    Selling,
    (
        Step(
            "sell",
            "Two Regions sell the same seats. With a limit each holds rights to some, and sells them without "
            "asking; a conditional ADD looks at its own copy of one number.",
            sets(cut=False, writes_per_s=10),
            lasts(5_000),
        ),
        Step(
            "cut",
            "The cable is cut. With the limit a Region sells what it has rights to, then its customers wait. The "
            "conditional ADD sells what its copy shows, in both Regions.",
            sets(cut=True, writes_per_s=10),
            lasts(14_000),
        ),
        Step(
            "heal",
            "The cable is whole. Rights go where customers wait. The two copies of the conditional ADD become "
            "one number, and what was sold beside it is forgotten.",
            sets(cut=False, writes_per_s=10),
            lasts(8_000),
        ),
        Step(
            "rest",
            "The sale is over. Count the customers who were told yes.",
            Scene.come_to_rest,
            rests,
        ),
    ),
)

STORIES = {story.name: story for story in (COUNTER, SALE)}


class Teller:
    """Tells a story in a scene of its own: by itself, until a visitor takes over, or step by step."""

    def __init__(self, name: object = COUNTER.name, seed: object = 1) -> None:
        if not isinstance(name, str) or name not in STORIES:
            raise BadControl(f"There is no story {name!r}; there are {' and '.join(STORIES)}.")
        if type(seed) is not int or not 0 <= seed <= SEED_MAX:
            raise BadControl(f"A seed is a whole number from 0 to {SEED_MAX:,}, not {seed!r}.")
        self.story, self.seed = STORIES[name], seed
        self.by_itself = True
        self._go(0)

    @property
    def step(self) -> Step:
        """The step that is told."""
        return self.story.steps[self.at]

    @property
    def over(self) -> bool:
        """Whether the last step has nothing more to show."""
        return self.at == len(self.story.steps) - 1 and self._step_is_over

    def pass_time(self) -> None:
        """One step of the scene."""
        self.scene.step()
        if self.by_itself and self._step_is_over:
            if self.over:
                self.by_itself = False
            else:
                self._go(self.at + 1)

    def go(self, name: object) -> None:
        """Tell this step next, by hand. Raises BadControl."""
        names = [step.name for step in self.story.steps]
        if name not in names:
            raise BadControl(f"There is no step {name!r}; there are {', '.join(names)}.")
        self.by_itself = False
        self._go(names.index(str(name)))
        self.scene.set({"paused": False})

    def tell(self, by_itself: object) -> None:
        """Go on by itself, from its start if it was over, or stop doing so. Raises BadControl."""
        if type(by_itself) is not bool:
            raise BadControl(f"The story goes on by itself or not: true or false, not {by_itself!r}.")
        if by_itself and self.over:
            self._go(0)
        self.by_itself = by_itself
        if by_itself:
            self.scene.set({"paused": False})

    def _go(self, at: int) -> None:
        if at == 0:
            self.scene = self.story.scene(self.seed)
        self.at, self._began_ms = at, self.scene.now_ms
        self.step.does(self.scene)

    @property
    def _step_is_over(self) -> bool:
        return self.step.is_over(self.scene, self.scene.now_ms - self._began_ms)
