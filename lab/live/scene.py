"""A scene of the live page: two Regions, the cable between them and everybody who acts, ten milliseconds at a time.

Rule 1: Deterministic from its seed and from what is set when.
Rule 2: No clock, no thread, no I/O.
Rule 3: Every design meets the same changes, deliveries, lag and cuts.
Rule 4: A visitor's request is taken whole or refused with BadControl.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

from lab.designs.simulated import Simulated
from lab.live import scripts
from lab.live.cable import Cable
from lab.live.controls import BadControl, Controls
from lab.live.customers import Customers, Demand
from lab.live.request_rows import KINDS, Requests
from ledger.requests import Key
from ledger.settings import Settings
from ledger.values import Delta
from simulator.choices import Drawn
from simulator.faults import NONE
from simulator.process import Process, Script
from simulator.world import World

REGIONS = ("eu-west-1", "us-east-1")
STEP_MS = 10
REST_STEPS = 400  # time enough to visit every lane, to merge and to read
SAMPLE_STEPS, SAMPLES = 25, 240
FORGET_STEPS = 500
STEPS_TO_NEXT_MAX = 1_000


class Scene:
    """`step()` lets 10 milliseconds pass; `set`, `crash`, `come_to_rest` and `step_to_next` are what a visitor does."""

    DESIGNS: ClassVar[Mapping[str, str]]
    """Who counts: what the page calls it, and its name."""
    DEMAND: ClassVar[Demand]
    SETTINGS: ClassVar[Settings]
    CONTROLS: ClassVar = Controls()
    RETRY: ClassVar = scripts.RETRY
    """How long whoever got no answer waits before the change is sent again."""

    def __init__(self, seed: int = 1, controls: Controls | None = None) -> None:
        self.choices = Drawn(seed)
        self.world = World(REGIONS, self.choices, page_size=100)
        self.world.step_ms = STEP_MS
        self.controls = controls or self.CONTROLS
        self.cable = Cable(self.world, self.choices)
        self.truth = Customers(self.SETTINGS, self.choices, self.DEMAND)
        self.problems: list[str] = []  # errors that nothing on the page can cause
        self.samples: deque[tuple[int, ...]] = deque(maxlen=SAMPLES)
        """The time, then what `sample` gives."""
        self.requests = Requests()
        self.simulated = Simulated(self.world)
        self.calm_steps = 0
        """For how long everything has been delivered, compacted and read."""
        self._readers: list[Process] = []
        self._writers: list[Process] = []

    # -- what a scene fills in -----------------------------------------------------------------------------------------

    def readers(self, region: str) -> Iterator[Process]:
        """Those who read for ever in a Region."""
        raise NotImplementedError

    def sends(self, delta: Delta, region: str) -> dict[str, scripts.Send]:
        """One delivery of a change through a Region: the same to each design."""
        raise NotImplementedError

    def housekeep(self, region: str) -> None:
        """One step of what runs by itself in a Region."""

    def arrived(self, region: str, key: Key) -> None:
        """An item arrived in a Region, or a write of a transaction became visible there."""

    def answered(self, region: str, number: int, who: str, what: object, came: object) -> None:
        """A request was answered; `number` is that of its change, -1 where there is none."""

    def sample(self) -> tuple[int, ...]:
        """The numbers of now, for the charts."""
        raise NotImplementedError

    def crash(self, region: object) -> None:
        """Crash what keeps the counters of a Region in order."""
        raise BadControl("Nobody here can crash: a gate needs no compactor. The story `counter` has compactors.")

    # -- what a visitor does -------------------------------------------------------------------------------------------

    def set(self, given: object) -> None:
        """Change controls."""
        self.controls = self.controls.with_(given)
        self.world.cut = {REGIONS[1]} if self.controls.cut else set()

    def come_to_rest(self) -> None:
        """No new changes, and the link is there: what is on its way arrives in its own time."""
        self.set({"writes_per_s": 0, "cut": False, "paused": False})

    def step_to_next(self) -> None:
        """Up to the next request of a writer or a compactor of ours."""
        before = self.requests.last_of_ours()
        for _ in range(STEPS_TO_NEXT_MAX):
            self.step()
            if self.requests.last_of_ours() > before:
                return

    # -- what is the case ----------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        """Since the scene began."""
        return self.world.step * STEP_MS

    @property
    def resting(self) -> bool:
        """Everything was delivered, compacted and read since: what is wrong now stays wrong."""
        return self.calm_steps >= REST_STEPS

    @property
    def on_their_way(self) -> int:
        """Changes that somebody sends or will send again, and items on the cable or becoming visible."""
        items = sum(len(replica.inbox) for replica in self.world.replicas.values()) + len(self.world.landings)
        return self.truth.waiting + len(self._writers) + items

    @property
    def calm(self) -> bool:
        """Whether nothing is asked for or on its way."""
        return self.controls.writes_per_s == 0 == self.on_their_way

    # -- time ----------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Ten milliseconds: the world acts by itself, then everybody who is ready sends one request."""
        world = self.world
        world.step += 1
        world.now_ms += STEP_MS
        self.choices.picks.clear()  # nobody replays a scene, and it may run for hours
        self._readers = self._readers or [reader for region in REGIONS for reader in self.readers(region)]
        self._arrive()
        for delta, region in self.truth.deliveries(world.now_ms, STEP_MS, self.controls):
            for who, send in self.sends(delta, region).items():
                number = self.truth.numbers[delta.token]
                self._writers.append(
                    self.enter(who, region, partial(scripts.until_acknowledged, send, self.RETRY), number)
                )
        for region in REGIONS:
            self.housekeep(region)
        for process in [*self._readers, *self._writers]:
            if process.ready:
                process.step()
        self._writers = [process for process in self._writers if not process.done]
        self.calm_steps = self.calm_steps + 1 if self.calm else 0
        if world.step % SAMPLE_STEPS == 0:
            self.samples.append((self.now_ms, *self.sample()))
        if world.step % FORGET_STEPS == 0:
            world.forget()

    def _arrive(self) -> None:
        for landing in list(self.world.landings):
            which = self.choices.pick(len(landing.left))
            key, _ = landing.left[which]
            self.world.land(landing, which)
            self.arrived(landing.region, key)
        for region, key in self.cable.carry(self.now_ms, self.controls.lag_ms, cut=self.controls.cut):
            self.arrived(region, key)

    def enter(self, who: str, region: str, script: Callable[[], Script], number: int = -1) -> Process:
        return Process(who, region, script, self.world, NONE, partial(self._heard, region, number))

    def _heard(self, region: str, number: int, who: str, what: Any, came: Any) -> None:
        kind = who if who in KINDS else "naive"
        self.requests.heard(self.now_ms, region, kind, who, what, came)
        self.answered(region, number, who, what, came)
