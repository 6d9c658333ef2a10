"""The thread that lets a story's time pass, and sends its picture to whoever watches.

Rule 1: One thread touches the scene, under one lock.
Rule 2: A fifth of a second is twenty steps, never more, so a slow computer shows a slow scene.
Rule 3: While nobody watches, no time passes.
"""

import json
import threading
import time
from collections.abc import Generator, Mapping

from lab.live.controls import BadControl
from lab.live.counting import Counting
from lab.live.counting_picture import CountingPainter
from lab.live.scene import STEP_MS
from lab.live.selling import Selling
from lab.live.selling_picture import SellingPainter
from lab.live.stories import COUNTER, Teller

TICK_S = 0.2
PAINTERS = {Counting: CountingPainter, Selling: SellingPainter}
STEPS = round(TICK_S * 1_000 / STEP_MS)


class Loop:
    """Start it, `do` what visitors ask for, iterate over `pictures()`, end it. Thread-safe. Raises BadControl."""

    def __init__(self, story: str = COUNTER.name, seed: int = 1) -> None:
        self._changed = threading.Condition()
        self._over = False
        self._watchers = self._number = 0
        self._thread = threading.Thread(target=self._run, name="scene", daemon=True)
        with self._changed:
            self._begin(story, seed)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """End the thread, and every iteration over the pictures."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        self._thread.join()

    def do(self, asked: object) -> None:
        """One thing that a visitor may do. Raises BadControl.

        {"set": {...}}, {"crash": region}, {"rest": true}, {"step": true}, {"go": a step of the story},
        {"tell": whether the story goes on by itself} or {"begin": {"story": name, "seed": number}}.
        """
        if not isinstance(asked, Mapping) or len(asked) != 1:
            raise BadControl('Ask for one thing, such as {"set": {"lag_ms": 400}}.')
        with self._changed:
            teller = self._teller
            match dict(asked):
                case {"set": {"paused": _, **others} as controls} if not others:
                    teller.scene.set(controls)  # to look closer is not to take over
                case {"set": controls}:
                    teller.scene.set(controls)
                    teller.by_itself = False
                case {"crash": region}:
                    teller.scene.crash(region)
                    teller.by_itself = False
                case {"rest": True}:
                    teller.scene.come_to_rest()
                    teller.by_itself = False
                case {"step": True} if teller.scene.controls.paused:
                    teller.scene.step_to_next()
                case {"step": True}:
                    raise BadControl("Only a paused scene goes on by steps. Pause it first.")
                case {"go": name}:
                    teller.go(name)
                    self._meet()
                case {"tell": by_itself}:
                    teller.tell(by_itself)
                    self._meet()
                case {"begin": {"story": story, "seed": seed}}:
                    self._begin(story, seed)
                case _:
                    raise BadControl(
                        "There is set, crash, rest, step, go, tell and begin; rest and step take true, begin a story "
                        "and a seed."
                    )
            self._show()

    @property
    def now_ms(self) -> int:
        """How much time of the scene has passed."""
        with self._changed:
            return self._teller.scene.now_ms

    def pictures(self) -> Generator[bytes, None, None]:
        """The scene's picture as JSON, whenever it is a new one, until the end."""
        with self._changed:
            self._watchers += 1
            self._changed.notify_all()
        try:
            seen = 0
            while (found := self._after(seen)) is not None:
                seen, picture = found
                yield picture
        finally:
            with self._changed:
                self._watchers -= 1

    def _after(self, seen: int) -> tuple[int, bytes] | None:
        """The next picture with its number; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._number > seen)
            return None if self._over else (self._number, self._picture)

    def _begin(self, story: object, seed: object) -> None:
        self._teller = Teller(story, seed)
        self._meet()
        self._show()

    def _meet(self) -> None:
        """The story may be in a new scene: a painter knows one."""
        self._painter = PAINTERS[self._teller.story.scene](self._teller)

    def _show(self) -> None:
        self._picture = json.dumps(self._painter.picture(), separators=(",", ":")).encode()
        self._number += 1
        self._changed.notify_all()

    def _run(self) -> None:
        with self._changed:
            while self._changed.wait_for(lambda: self._over or self._watchers) and not self._over:
                began = time.monotonic()
                if not self._teller.scene.controls.paused:
                    for _ in range(STEPS):
                        self._teller.pass_time()
                self._show()
                self._changed.wait_for(lambda: self._over, max(0, began + TICK_S - time.monotonic()))
