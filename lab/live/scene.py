"""The scene of the live page: two Regions, the cable between them and everybody who acts, ten
milliseconds at a time.

Rule 1: Deterministic from its seed and from what is set when: no clock, no thread, no I/O.
Rule 2: Every design meets the same changes, deliveries, lag and cuts.
Rule 3: Every reading is kept with what its Region had received by then.
Rule 4: A crash comes right after a compactor's write, which is the worst moment.
Rule 5: A visitor's request is taken whole or refused with BadControl.
Rule 6: A seat is sold to every customer who was answered yes, whatever a counter says.
Rule 7: Nothing goes wrong by itself before the first cut: every item crosses at once, every answer
arrives, the naive merge does not merge, and only a part of the seats is on sale.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lab.live import scripts
from lab.live.cable import Cable
from lab.live.controls import LAG_MS, BadControl, Controls
from lab.live.customers import COUNTER, Customers
from lab.live.received import Received
from lab.live.scripts import ADVANCE_SEATS, DESIGNS, REGIONS, SELLERS, SETTINGS
from ledger.core.requests import DeleteMany, Put, Transact
from simulator.choices import Drawn
from simulator.faults import NONE
from simulator.process import Process, Script
from simulator.trace import in_words
from simulator.world import World

STEP_MS = 10
REST_STEPS = 320  # time enough to visit every lane, to merge and to read
SERVED_STEPS = 1_400  # by then compactors have counted and deleted all that customers sent
SAMPLE_STEPS, SAMPLES, ROWS = 25, 240, 14
FORGET_STEPS = 500
STEPS_TO_NEXT_MAX = 1_000
DOWN_STEPS = 400
CRASH_BY_STEPS = 300  # a crash waits for the compactor's next write, but no longer than this


@dataclass(frozen=True, slots=True)
class Reading:
    """The value that a reader got, and the sum and number of the changes that the Region had
    received then.

    count: of how many changes the read knows that it is the sum; None where it does not know.
    """

    value: int = 0
    count: int | None = None
    received: int = 0
    received_count: int = 0

    @property
    def behind(self) -> int:
        """How many of the received changes a read that counts lacks."""
        return self.received_count - (self.count or 0)

    @property
    def is_wrong(self) -> bool:
        """Whether a read that counts is neither the sum of what its Region received nor behind."""
        return self.behind < 0 or (self.behind == 0 and self.value != self.received)


class Scene:
    """`step()` lets 10 milliseconds pass; `set`, `crash`, `come_to_rest` and `step_to_next` are
    what a visitor does.

    By Region, `readings`: the last of each design; `since_crash`: those of ours since the last
    crash there.
    By design, `answers`: which customers have a seat, and which were refused. `buyers`: who asked
    for one. `was_cut`: the link, at some time. `is_calm`: a visitor has disturbed nothing yet.
    """

    def __init__(self, seed: int = 1, controls: Controls | None = None) -> None:
        self.seed, self.controls = seed, controls or Controls()
        self._choices = Drawn(seed)
        self.world = World(REGIONS, self._choices, page_size=100)
        self.world.step_ms = STEP_MS
        self.cable = Cable(self.world, self._choices)
        self.truth = Customers(REGIONS, self._choices)
        self.received = Received(self.world, SETTINGS.lanes_of(COUNTER), self.truth)
        self.requests = 0  # of our writers and compactors so far
        self.rows: deque[list[str]] = deque(maxlen=ROWS)
        """The last of them with their answers, the newest first."""

        self.samples: dict[str, deque[list[int]]] = {
            region: deque(maxlen=SAMPLES) for region in REGIONS
        }
        """By Region: what it has received, the truth, and each design's value, ours last."""

        self.readings = {region: dict.fromkeys(DESIGNS, Reading()) for region in REGIONS}
        self.since_crash: dict[str, list[Reading]] = {}
        self.done: dict[str, Counter[str]] = {region: Counter() for region in REGIONS}
        self.answers: dict[str, dict[int, bool]] = {design: {} for design in SELLERS}
        self.buyers: set[int] = set()
        self.was_cut = False
        self.is_calm = self.controls.calm
        self._served_steps = 0  # for how long no customer has waited and no compactor was down
        self._calm_steps = 0  # for how long everything has been delivered, compacted and read
        self._armed: dict[str, int] = {}
        self._down_until = dict.fromkeys(REGIONS, 0)
        self._writes = dict.fromkeys(REGIONS, 0)
        self._housekeepers = {region: self._enter_housekeepers(region) for region in REGIONS}
        self._readers = [
            self._enter(
                f"{design} reader",
                region,
                partial(scripts.reads, design, partial(self._saw, region, design)),
            )
            for region in REGIONS
            for design in DESIGNS
        ]
        self.charts: dict[str, list[int]] = {region: [] for region in REGIONS}
        """By Region: what changed in each step of the last minutes, as our series there says."""

        self._readers += [
            self._enter(
                "charts", region, partial(scripts.charts, partial(self.charts.__setitem__, region))
            )
            for region in REGIONS
        ]
        self._writers: list[Process] = []

    def set(self, given: object) -> None:
        """Change controls."""
        self.controls = self.controls.with_(given)
        if self.controls.cut and not self.was_cut:
            self.was_cut = True
            self.controls = self.controls.troubled()
        self.is_calm &= self.controls.calm
        self.world.cut = {REGIONS[1]} if self.controls.cut else set()

    def crash(self, region: object) -> None:
        """Crash the compactor of a Region (and the naive merge's job there) right after its next
        write.
        """
        if region not in REGIONS:
            raise BadControl(f"There is no Region {region!a}; there are {' and '.join(REGIONS)}.")
        self._armed.setdefault(str(region), self.world.step)

    def come_to_rest(self) -> None:
        """No new changes, and the link is there. What is on its way arrives, and what will come
        again comes sooner, so that nobody waits long for the verdict.
        """
        lag_ms = min(self.controls.lag_ms, LAG_MS)
        self.set({"writes_per_s": 0, "cut": False, "paused": False, "lag_ms": lag_ms})
        self.truth.hurry(self.world.now_ms)

    def step_to_next(self) -> None:
        """Up to the next request of a writer or a compactor of ours."""
        before = self.requests
        for _ in range(STEPS_TO_NEXT_MAX):
            self.step()
            if self.requests > before:
                return

    @property
    def now_ms(self) -> int:
        """Since the scene began."""
        return self.world.step * STEP_MS

    @property
    def resting(self) -> bool:
        """Everything was delivered, compacted and read since: what is wrong now stays wrong."""
        return self._calm_steps >= REST_STEPS

    @property
    def on_their_way(self) -> int:
        """How many changes somebody sends or will send again, and items are on the cable or
        becoming visible.
        """
        items = sum(len(replica.inbox) for replica in self.world.replicas.values()) + len(
            self.world.landings
        )
        return self.truth.waiting + len(self._writers) + items

    @property
    def customers_wait(self) -> bool:
        """Whether somebody sends a change or will send one again."""
        return bool(self.truth.waiting or self._writers)

    @property
    def rests_in_ms(self) -> int:
        """How long it takes at most until it rests, if customers, link and compactors are left
        alone.
        """
        step = self.world.step
        runs = [*self._down_until.values()]
        runs += [armed + CRASH_BY_STEPS + DOWN_STEPS for armed in self._armed.values()]
        runs_ms = (max(runs) - step) * STEP_MS
        wait_ms = max(0, runs_ms, self.truth.last_due_ms(self.world.now_ms))
        left = max(SERVED_STEPS - self._served_steps, REST_STEPS - self._calm_steps)
        return wait_ms + left * STEP_MS

    def compactor_is(self, region: str) -> str:
        """running, about to crash, or crashed."""
        if self._down_until[region] > self.world.step:
            return "crashed"
        return "about to crash" if region in self._armed else "running"

    def step(self) -> None:
        """Ten milliseconds: the world acts by itself, then everybody who is ready sends one
        request.
        """
        world, controls = self.world, self.controls
        world.step += 1
        world.now_ms += STEP_MS
        self._choices.picks.clear()  # nobody replays a scene, and it may run for hours
        for landing in list(world.landings):
            world.land(landing, self._choices.pick(len(landing.left)))
        self.cable.carry(self.now_ms, controls.lag_ms, cut=controls.cut)
        for change, region in self.truth.deliveries(world.now_ms, STEP_MS, controls):
            self._writers += [
                self._enter(f"{design} writer", region, partial(scripts.sends, design, change))
                for design in DESIGNS
            ]
            if self.was_cut or len(self.buyers) < ADVANCE_SEATS:
                self.buyers.add(change.number)
            self._writers += [
                self._enter(
                    f"{design} buyer",
                    region,
                    partial(scripts.buys, design, change, partial(self._sold, design)),
                )
                for design in SELLERS
                if change.number in self.buyers
            ]
        for region in REGIONS:
            self._housekeep(region)
        for process in [*self._readers, *self._writers]:
            if process.ready:
                process.step()
        self._writers = [process for process in self._writers if not process.done]
        runs = all(self.compactor_is(region) == "running" for region in REGIONS)
        is_served = runs and not (controls.writes_per_s or controls.cut or self.customers_wait)
        self._served_steps = self._served_steps + 1 if is_served else 0
        self._calm_steps = self._calm_steps + 1 if is_served and not self.on_their_way else 0
        if world.step % SAMPLE_STEPS == 0:
            for region, samples in self.samples.items():
                read = [self.readings[region][design].value for design in reversed(DESIGNS)]
                samples.append([self.received.value(region), self.truth.value, *read])
        if world.step % FORGET_STEPS == 0:
            world.forget()

    def _housekeep(self, region: str) -> None:
        written = self._writes[region]
        compactor, merge = self._housekeepers[region]
        for process in (compactor,) if self.is_calm else (compactor, merge):
            if process.ready:
                process.step()
        armed, step = self._armed.get(region), self.world.step
        if armed is not None and (self._writes[region] > written or step >= armed + CRASH_BY_STEPS):
            del self._armed[region]
            self.since_crash[region] = []
            self._down_until[region] = step + DOWN_STEPS
            for process in self._housekeepers[region]:
                process.crash()
                process.asleep_until = step + DOWN_STEPS

    def _enter(self, who: str, region: str, script: Callable[[], Script]) -> Process:
        return Process(who, region, script, self.world, NONE, partial(self._answered, region))

    def _enter_housekeepers(self, region: str) -> tuple[Process, Process]:
        own = replace(SETTINGS, region=region)
        compacts = partial(scripts.compacts, own, self.done[region])
        return self._enter("compactor", region, compacts), self._enter(
            "naive merge", region, scripts.merges
        )

    def _answered(self, region: str, who: str, request: Any, answer: Any) -> None:
        who = who.removeprefix("ours ")
        if who in ("writer", "compactor"):
            self.requests += 1
            asked, came = in_words(request, answer)
            if isinstance(request, Put) and isinstance(answer, Mapping):
                came = "there already: replayed"
            self.rows.appendleft([f"{self.now_ms / 1_000:.2f}", region, who, asked, came])
        if who == "compactor" and isinstance(request, Put | Transact | DeleteMany):
            self._writes[region] += 1

    def _sold(self, design: str, customer: int, has_seat: bool) -> None:
        """A customer who was answered yes once has a seat."""
        answers = self.answers[design]
        answers[customer] = has_seat or answers.get(customer, False)

    def _saw(self, region: str, design: str, value: int, count: int | None) -> None:
        """A reader of a design in a Region came back."""
        received = self.received.numbers(region)
        reading = Reading(value, count, self.received.value(region), len(received))
        self.readings[region][design] = reading
        if design == "ours" and region in self.since_crash:
            self.since_crash[region].append(reading)
