"""The thread that lets a scene's time pass, and sends its picture to whoever watches.

Rule 1: One thread touches the scene, under one lock.
Rule 2: A fifth of a second is twenty steps, never more, so a slow computer shows a slow scene.
Rule 3: While nobody watches, no time passes.
"""

import json
import threading
import time
from collections.abc import Generator, Mapping

from lab.live.controls import BadControl
from lab.live.picture import picture
from lab.live.scene import STEP_MS, Scene

TICK_S = 0.2
WISHES = (
    'Send one of {"set": {"lag_ms": 400}}, {"crash": "eu-west-1"}, {"rest": true}, {"step": true}, {"begin": true}.'
)
STEPS = round(TICK_S * 1_000 / STEP_MS)


class Loop(threading.Thread):
    """Start it, `do` what visitors want, iterate over `pictures()`, end it. Thread-safe."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__(name="scene", daemon=True)
        self._changed = threading.Condition()
        self._over = False
        self._watchers = self._number = 0
        self._scene = Scene(seed)
        self._show()

    def end(self) -> None:
        """End the thread, and every iteration over the pictures."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        self.join()

    def do(self, wish: object) -> None:
        """One thing that a visitor may do: set controls, crash a Region's compactor, rest, step or begin again.

        Raises BadControl.
        """
        if not isinstance(wish, Mapping) or len(wish) != 1:
            raise BadControl(WISHES)
        with self._changed:
            scene = self._scene
            match dict(wish):
                case {"set": controls}:
                    scene.set(controls)
                case {"crash": region}:
                    scene.crash(region)
                case {"rest": True}:
                    scene.come_to_rest()
                case {"step": True} if scene.controls.paused:
                    scene.step_to_next()
                case {"step": True}:
                    raise BadControl("Only a paused scene goes on by steps. Pause it first.")
                case {"begin": True}:
                    self._scene = Scene(scene.seed)
                case _:
                    raise BadControl(WISHES)
            self._show()

    def pictures(self) -> Generator[bytes, None, None]:
        """The scene's picture as JSON, whenever it is a new one, until the end."""
        with self._changed:
            self._watchers += 1
            self._changed.notify_all()
        shown = 0
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda shown=shown: self._over or self._number > shown)  # type: ignore[misc]
                    if self._over:
                        return
                    shown, latest = self._number, self._picture
                yield latest
        finally:
            with self._changed:
                self._watchers -= 1

    def _show(self) -> None:
        self._picture = json.dumps(picture(self._scene), separators=(",", ":")).encode()
        self._number += 1

    def run(self) -> None:
        with self._changed:
            while self._changed.wait_for(lambda: self._over or self._watchers) and not self._over:
                began = time.monotonic()
                if not self._scene.controls.paused:
                    for _ in range(STEPS):
                        self._scene.step()
                    self._show()
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._over, max(0, began + TICK_S - time.monotonic()))
