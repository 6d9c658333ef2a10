"""One scene of the live page: two Regions and everybody who acts in them, a step at a time.

Rule 1: Deterministic from its seed and from what is set when.
Rule 2: No clock, no thread, no I/O.
Rule 3: Every design meets the same changes, deliveries, lag, cuts and crashes.
Rule 4: A visitor's request is taken whole or refused with BadControl.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from lab.designs.design import Sight
from lab.designs.simulated import Simulated
from lab.live import scripts
from lab.live.controls import BadControl, Controls
from lab.live.customers import Customers
from lab.live.request_rows import KINDS, Requests
from ledger.requests import DeleteMany, Key, Put, Transact
from ledger.settings import Settings
from ledger.values import Delta
from simulator.choices import Drawn
from simulator.faults import NONE
from simulator.process import Process, Script
from simulator.world import World

REGIONS = ("eu-west-1", "us-east-1")
DESIGNS = ("ours", "atomic", "merge")
STEP_MS = 10
SETTINGS = Settings(
    table="counters",
    region=REGIONS[0],
    regions=REGIONS,
    allowed_lateness_ms=1_500,
    keep_ms=3_000,
    read_time_max_ms=2_000,
    fold_min=4,
    fold_max=40,
)
"""The protocol's times, shortened so that a change is folded and cleaned while one watches."""
DOWN_STEPS = 400
CRASH_BY_STEPS = 300  # a crash waits for the compactor's next write, which is the worst moment, but no longer than this
REST_STEPS = 400  # time enough to visit every lane, to merge and to read
SAMPLE_STEPS, SAMPLES = 25, 240
FORGET_STEPS = 500
STEPS_TO_NEXT_MAX = 1_000


class Scene:
    """`step()` lets 10 milliseconds pass; `set`, `crash`, `come_to_rest` and `step_to_next` are what a visitor does."""

    def __init__(self, seed: int = 1, controls: Controls | None = None) -> None:
        self._choices = Drawn(seed)
        self.world = World(REGIONS, self._choices, page_size=100)
        self.world.step_ms = STEP_MS
        self.controls = controls or Controls()
        self.truth = Customers(SETTINGS, self._choices)
        self.sights = {region: dict.fromkeys(DESIGNS, Sight()) for region in REGIONS}
        self.done: dict[str, Counter[str]] = {region: Counter() for region in REGIONS}
        self.problems: list[str] = []  # errors that nothing on the page can cause
        self.samples: deque[tuple[int, ...]] = deque(maxlen=SAMPLES)
        """The time, the truth, then each design's value in the first Region, then in the second."""
        self.requests = Requests()
        self._simulated = Simulated(self.world)
        self._arrives: dict[tuple[str, Key], tuple[int, float]] = {}
        self._armed: dict[str, int] = {}
        self._down_until = dict.fromkeys(REGIONS, 0)
        self._writes = dict.fromkeys(REGIONS, 0)
        self._calm_since = 0
        self._housekeepers = {region: self._enter_housekeepers(region) for region in REGIONS}
        self._readers = [reader for region in REGIONS for reader in self._enter_readers(region)]
        self._writers: list[Process] = []

    # -- what a visitor does -------------------------------------------------------------------------------------------

    def set(self, given: object) -> None:
        """Change controls."""
        self.controls = self.controls.with_(given)
        self.world.cut = {REGIONS[1]} if self.controls.cut else set()

    def crash(self, region: object) -> None:
        """Crash the compactor of a Region (and the naive merge's job there) right after its next write."""
        if region not in REGIONS:
            raise BadControl(f"There is no Region {region!r}; there are {' and '.join(REGIONS)}.")
        self._armed.setdefault(str(region), self.world.step)

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
        return self.world.step - self._calm_since >= REST_STEPS

    def compactor_is(self, region: str) -> str:
        """running, about to crash, or crashed."""
        if self._down_until[region] > self.world.step:
            return "crashed"
        return "about to crash" if region in self._armed else "running"

    # -- time ----------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Ten milliseconds: the world acts by itself, then everybody who is ready sends one request."""
        world = self.world
        world.step += 1
        world.now_ms += STEP_MS
        self._choices.picks.clear()  # nobody replays a scene, and it may run for hours
        for landing in list(world.landings):
            world.land(landing, self._choices.pick(len(landing.left)))
        self._replicate()
        for delta, region in self.truth.deliveries(world.now_ms, STEP_MS, self.controls):
            self._deliver(delta, region)
        for region in REGIONS:
            self._housekeep(region)
        for process in [*self._readers, *self._writers]:
            if process.ready:
                process.step()
        self._writers = [process for process in self._writers if not process.done]
        if self._busy():
            self._calm_since = world.step
        if world.step % SAMPLE_STEPS == 0:
            values = (self.sights[region][design].value for region in REGIONS for design in DESIGNS)
            self.samples.append((self.now_ms, self.truth.value, *values))
        if world.step % FORGET_STEPS == 0:
            world.forget()

    def _replicate(self) -> None:
        """Deliver what has been on its way for its share of the lag; a slider that moves is felt at once."""
        if self.controls.cut:
            return
        for region, key in self.world.deliverable():
            since, share = self._arrives.setdefault((region, key), (self.now_ms, self._choices.pick(200) / 100))
            if self.now_ms - since >= share * self.controls.lag_ms:
                del self._arrives[region, key]
                self.world.deliver(region, key)

    def _housekeep(self, region: str) -> None:
        written = self._writes[region]
        for process in self._housekeepers[region]:
            if process.ready:
                process.step()
        armed, step = self._armed.get(region), self.world.step
        if armed is not None and (self._writes[region] > written or step >= armed + CRASH_BY_STEPS):
            del self._armed[region]
            self._down_until[region] = step + DOWN_STEPS
            for process in self._housekeepers[region]:
                process.crash()
                process.asleep_until = step + DOWN_STEPS

    def _busy(self) -> bool:
        """Whether a change, an item or a compactor is still on its way."""
        on_its_way = any(replica.inbox for replica in self.world.replicas.values())
        up = all(self.compactor_is(region) == "running" for region in REGIONS)
        asked = self.controls.writes_per_s > 0 or self.truth.waiting or bool(self._writers)
        return asked or on_its_way or bool(self.world.landings) or not up

    # -- who acts ------------------------------------------------------------------------------------------------------

    def _enter(self, who: str, region: str, script: Callable[[], Script]) -> Process:
        return Process(who, region, script, self.world, NONE, partial(self._heard, region))

    def _heard(self, region: str, who: str, what: object, came: object) -> None:
        kind = who if who in KINDS else "naive"
        self.requests.heard(self.now_ms, region, kind, who, what, came)
        if kind == "compactor" and isinstance(what, Put | Transact | DeleteMany):
            self._writes[region] += 1

    def _enter_housekeepers(self, region: str) -> tuple[Process, Process]:
        own = replace(SETTINGS, region=region)
        compacts = partial(scripts.compacts, own, self.done[region], self.problems.append)
        return self._enter("compactor", region, compacts), self._enter("naive merge", region, scripts.merges)

    def _enter_readers(self, region: str) -> Iterator[Process]:
        readings, see = scripts.readings(replace(SETTINGS, region=region), self._simulated), self.sights[region]
        for design, (who, once) in readings.items():
            reads = partial(scripts.reads, once, partial(see.__setitem__, design), self.problems.append)
            yield self._enter(who, region, reads)

    def _deliver(self, delta: Delta, region: str) -> None:
        """One delivery of a change through a Region: the same to each design."""
        for who, send in scripts.sends(delta, region, self._simulated).items():
            self._writers.append(self._enter(who, region, partial(scripts.until_acknowledged, send)))
