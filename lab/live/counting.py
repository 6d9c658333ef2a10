"""The scene of a counter: this library, atomic ADD and the naive merge count what is sold in two Regions.

Rule 1: Every reading is kept with what its Region could know at that moment, and with what it is made of.
Rule 2: A crash comes right after a compactor's write, which is the worst moment.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import ClassVar

from lab.designs.design import Sight
from lab.live import scripts
from lab.live.contents import Contents
from lab.live.controls import BadControl, Controls
from lab.live.customers import Demand
from lab.live.knowledge import Knowledge
from lab.live.readings import Reading, Why, reasons
from lab.live.scene import REGIONS, Scene
from ledger import items
from ledger.requests import Delete, DeleteMany, Key, Put, Transact, Update
from ledger.settings import Settings
from ledger.values import Delta
from simulator.process import Process
from simulator.world import Landing

COUNTER = "tickets"
DOWN_STEPS = 400
CRASH_BY_STEPS = 300  # a crash waits for the compactor's next write, but no longer than this
MERGED = Key(items.delta_pk(scripts.NAIVE_LANE), "total")


class Counting(Scene):
    """By Region, `readings`: the last of each design; `since_crash`: those of ours since the last crash there."""

    DESIGNS: ClassVar = {"ours": "this library", "atomic": "atomic ADD", "merge": "naive merge"}
    DEMAND: ClassVar = Demand(COUNTER, (1, 1, 1, 2, 2, 3, 4, -1), late_per_mille=40)
    SETTINGS: ClassVar = Settings(
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

    def __init__(self, seed: int = 1, controls: Controls | None = None) -> None:
        super().__init__(seed, controls)
        self.readings = {region: dict.fromkeys(self.DESIGNS, Reading()) for region in REGIONS}
        self.done: dict[str, Counter[str]] = {region: Counter() for region in REGIONS}
        self.since_crash: dict[str, list[Reading]] = {}
        self.knowledge = Knowledge(self.world, self.SETTINGS.lanes_of(COUNTER), self.truth)
        self._added, self._merged = Contents(self.world, scripts.ATOMIC.item_key(COUNTER)), Contents(self.world, MERGED)
        self._armed: dict[str, int] = {}
        self._down_until = dict.fromkeys(REGIONS, 0)
        self._writes = dict.fromkeys(REGIONS, 0)
        self._housekeepers = {region: self._enter_housekeepers(region) for region in REGIONS}

    # -- what a visitor does, and what is the case ---------------------------------------------------------------------

    def crash(self, region: object) -> None:
        """Crash the compactor of a Region (and the naive merge's job there) right after its next write."""
        if region not in REGIONS:
            raise BadControl(f"There is no Region {region!r}; there are {' and '.join(REGIONS)}.")
        self._armed.setdefault(str(region), self.world.step)

    def compactor_is(self, region: str) -> str:
        """running, about to crash, or crashed."""
        if self._down_until[region] > self.world.step:
            return "crashed"
        return "about to crash" if region in self._armed else "running"

    @property
    def calm(self) -> bool:
        return super().calm and all(self.compactor_is(region) == "running" for region in REGIONS)

    def sample(self) -> tuple[int, ...]:
        """The truth, then by Region what it can know and each design's value."""
        found = [self.truth.value]
        for region in REGIONS:
            found += [self.knowledge.value(region), *(each.value for each in self.readings[region].values())]
        return tuple(found)

    # -- who acts ------------------------------------------------------------------------------------------------------

    def readers(self, region: str) -> Iterator[Process]:
        found = scripts.readings(replace(self.SETTINGS, region=region), COUNTER, self.simulated)
        for design, (who, once) in found.items():
            yield self.enter(
                who, region, partial(scripts.reads, once, partial(self._saw, region, design), self.problems.append)
            )

    def sends(self, delta: Delta, region: str) -> dict[str, scripts.Send]:
        return scripts.sends(delta, region, self.simulated)

    def housekeep(self, region: str) -> None:
        written = self._writes[region]
        for process in self._housekeepers[region]:
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

    def _enter_housekeepers(self, region: str) -> tuple[Process, Process]:
        own = replace(self.SETTINGS, region=region)
        compacts = partial(scripts.compacts, own, COUNTER, self.done[region], self.problems.append)
        return self.enter("compactor", region, compacts), self.enter("naive merge", region, scripts.merges)

    # -- what is followed ----------------------------------------------------------------------------------------------

    def answered(self, region: str, number: int, who: str, what: object, came: object) -> None:
        match who, what:
            case "compactor", Put() | Transact() | DeleteMany():
                self._writes[region] += 1
            case "writer of ADD", Update() if came is None:
                self._added.decided(region, [number])
                self._added.look(region)
            case "naive merge", Transact(writes) if isinstance(came, Landing):
                merged = [write.key.sk for write in writes if isinstance(write, Delete)]
                self._merged.decided(region, map(self.truth.numbers.__getitem__, merged))

    def arrived(self, region: str, key: Key) -> None:
        for contents in (self._added, self._merged):
            if key == contents.key:
                contents.look(region)

    def _saw(self, region: str, design: str, sight: Sight) -> None:
        """A reader of a design in a Region came back."""
        known, known_value = self.knowledge.known(region), self.knowledge.value(region)
        why: tuple[Why, ...] = ()
        if design != "ours":
            followed = self._added if design == "atomic" else self._merged
            made, elsewhere = followed.here(region), followed.elsewhere(region)
            if design == "merge":
                made = made.plus(self._unmerged(region))
                elsewhere = elsewhere.union(*(self._unmerged(other) for other in REGIONS if other != region))
            why = reasons(sight.value - known_value, known, made, elsewhere, self.truth.sum)
        reading = Reading(sight.value, sight.count, known_value, len(known), why)
        self.readings[region][design] = reading
        if design == "ours" and region in self.since_crash:
            self.since_crash[region].append(reading)

    def _unmerged(self, region: str) -> set[int]:
        """The changes whose deltas the naive merge has not deleted."""
        cells = self.world.replicas[region].cells.get(MERGED.pk, {})
        return {self.truth.numbers[sk] for sk, cell in cells.items() if cell.item and sk != MERGED.sk}
