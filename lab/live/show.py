"""A scene as its visitors see it: time passes while somebody asks for its picture.

Rule 1: One lock guards the scene.
Rule 2: A fifth of a second is twenty steps at most, so a slow computer shows a slow scene, and
while nobody watches no time passes.
"""

import json
import threading
import time
from collections.abc import Mapping

from lab.live.controls import BadControl
from lab.live.picture import picture
from lab.live.scene import STEP_MS, Scene

STEPS_MAX = 200 // STEP_MS
WISHES = (
    'Send one of {"set": {"lag_ms": 400}}, {"crash": "eu-west-1"}, {"rest": true}, {"step": '
    'true}, {"begin": true}.'
)


class Show:
    """Thread-safe."""

    def __init__(self, seed: int = 1) -> None:
        self._lock, self._scene, self._shown_s = threading.Lock(), Scene(seed), time.monotonic()

    def picture(self) -> bytes:
        """The scene's picture as JSON, after the time since the last one has passed in it."""
        with self._lock:
            before_s, self._shown_s = self._shown_s, time.monotonic()
            if not self._scene.controls.paused:
                for _ in range(min(STEPS_MAX, round((self._shown_s - before_s) * 1_000 / STEP_MS))):
                    self._scene.step()
            return json.dumps(picture(self._scene), separators=(",", ":")).encode()

    def do(self, wish: object) -> None:
        """One thing that a visitor may do: set controls, crash a Region's compactor, rest, step or
        begin again.

        Raises BadControl.
        """
        if not isinstance(wish, Mapping) or len(wish) != 1:
            raise BadControl(WISHES)
        with self._lock:
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
