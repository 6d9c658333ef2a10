"""What every history and every small cast stands on: a world, its faults, the processes let loose
on it, and the judges that look on.

Rule 1: everything follows from the choices, so a seed or a list of picks is the whole history.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from lab.histories.stage.judge import Judge, ended
from lab.histories.stage.world import WatchedWorld
from ledger.core import items, tokens
from ledger.core.requests import Instant, Item, Key, Now, Program, Result
from ledger.core.running import drive
from ledger.core.settings import Settings
from ledger.core.values import Lane
from simulator.choices import Choices
from simulator.faults import NONE, Faults, mix
from simulator.happening import by_itself
from simulator.process import Log, Process, Script, Sleep
from simulator.world import Landing, World

REGIONS = ("eu-west-1", "us-east-1", "ap-south-1")
BEGAN_MS = 10_000_000
IDLE_STEPS_MAX = 10
STEPS_MAX = 20_000
AT_ONCE = (0, 1, 3)
SHORT = (0, 1, 3, 10, 30, 90)
LONG = (0, 10, 30, 100, 300, 700, 1_300)
LATE = (700, 1_300, 2_500, 4_000)
"""Rests, in steps: within one read, within what a read may take, up to beyond what clean waits
for, and after it.
"""
PACE = (LONG, LONG, SHORT, LATE)
"""Of who adds and reads: over several visits, in a burst, or when the first ones were cleaned."""
PACES = ((LONG,), (LONG, SHORT), (LONG, AT_ONCE, AT_ONCE))
"""Of compactors: some come several times in a row, within one read."""

One = TypeVar("One")


@dataclass(slots=True)
class Played:
    violations: list[str]
    steps: int
    counts: Counter[str]


@dataclass(slots=True)
class Stage:
    world: World
    faults: Faults = NONE
    log: Log | None = None
    processes: list[Process] = field(default_factory=list)
    judges: list[Judge] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def judged_by(self, *judges: Judge) -> None:
        """By these from here on; at the end in this order."""
        self.judges += judges
        if isinstance(self.world, WatchedWorld):
            self.world.watch = self._written

    def _written(self, region: str, key: Key, item: Item | None) -> None:
        for judge in self.judges:
            judge.at_write(region, key, item)

    def answered(self, answer: object) -> None:
        for judge in self.judges:
            judge.at_answer(answer)

    def ended(self) -> Played:
        """The history is over: what its judges say."""
        return Played(ended(self.judges), self.world.step, self.counts)

    def enter(self, name: str, region: str, script: Callable[[], Script]) -> Process:
        process = Process(name, region, script, self.world, self.faults, self.log)
        if self.faults.skew_ms:
            process.skew_ms = any_skew(self.world.choices, self.faults)
        self.processes.append(process)
        return process

    def play(
        self, is_over: Callable[[], object] = lambda: False, steps_max: int = STEPS_MAX
    ) -> bool:
        """Step by step, until nobody has anything left to do; or until it is said to be over:
        whether it was.
        """
        for _ in range(steps_max):
            if is_over():
                return True
            if not self._step():
                break
        return False

    def _step(self) -> bool:
        """One step of the history; False when nobody has anything left to do."""
        world, processes = self.world, self.processes
        world.step += 1
        world.now_ms += world.step_ms
        self._by_itself()
        ready = [process for process in processes if process.ready]
        if ready:
            one_of(world.choices, ready).step()
            return True
        sleeping = [
            each.asleep_until
            for each in processes
            if not each.done and each.asleep_until > world.step
        ]
        if sleeping and not world.landings:
            skipped = min(sleeping) - world.step
            world.step += skipped
            world.now_ms += skipped * world.step_ms
            for _ in range(min(skipped, IDLE_STEPS_MAX)):
                self._by_itself()
        return any(not process.done for process in processes)

    def _by_itself(self) -> None:
        """What the world does without being asked, and the clocks."""
        by_itself(self.world, self.faults, self._happened)
        if self.faults.skew_ms and self.world.choices.chance(10):
            process = one_of(self.world.choices, self.processes)
            process.skew_ms = any_skew(self.world.choices, self.faults)

    def _happened(self, what: object, came: object) -> None:
        if self.log is not None:
            self.log("the world", what, came)


def one_of(choices: Choices, several: Sequence[One]) -> One:
    return several[choices.pick(len(several))]


def rest(choices: Choices, steps: Sequence[int]) -> Sleep:
    return Sleep(one_of(choices, steps))


def any_skew(choices: Choices, faults: Faults) -> int:
    return choices.pick(2 * faults.skew_ms + 1) - faults.skew_ms


def in_steps_of(step_ms: int, faults: Faults) -> Faults:
    return replace(faults, skew_ms=faults.skew_ms * step_ms)


def watched(
    choices: Choices, faults: Faults | None, steps_ms: Sequence[int], **given: Any
) -> tuple[WatchedWorld, Faults]:
    """A world of two or three Regions that shows its writes; and its faults, which are drawn, too,
    where none are given.
    """
    faults = mix(choices) if faults is None else faults
    regions = REGIONS[: 2 + (choices.pick(3) == 2)]
    step_ms = one_of(choices, steps_ms)
    faults = in_steps_of(step_ms, faults)
    page_size = 1 + choices.pick(3)
    world = WatchedWorld(regions, choices, page_size=page_size, lag_steps=faults.lag_steps, **given)
    world.step_ms, world.now_ms = step_ms, BEGAN_MS
    return world, faults


def timed(step_ms: int) -> Settings:
    """Times in proportion to the real ones.

    keep is above a read's longest time and lag and four worst clocks.
    """
    return Settings(
        table="counters",
        region=REGIONS[0],
        allowed_lateness_ms=250 * step_ms,
        keep_ms=1_000 * step_ms,
        read_time_max_ms=300 * step_ms,
    )


def finish(world: World, region: str, program: Program[Result]) -> Result:

    def answer(request: Any) -> Any:
        if isinstance(request, Now):
            return Instant(world.now_ms, world.now_ms)
        given = world.answer(region, request)
        while isinstance(given, Landing) and given.left:
            world.land(given, 0)
        return None if isinstance(given, Landing) else given

    return drive(program, answer)


def shelf(world: World, lane: Lane, region: str = "") -> tuple[set[bytes], set[bytes], bytes]:
    """Of a lane, at home or in a Region: the tokens in its items, those that its segments list,
    and its watermark.
    """
    replica = world.replicas[region or lane.region]
    checkpoint = replica.item(items.checkpoint_key(lane))
    upto = tokens.to_bytes(items.checkpoint_of(lane, checkpoint).watermark) if checkpoint else b""
    there = [cell.item for cell in replica.cells.get(items.delta_pk(lane), {}).values()]
    folded = [
        cell.item
        for sk, cell in replica.cells.get(items.fold_pk(lane), {}).items()
        if sk.startswith("segment#")
    ]
    held = {token for item in there if item for token in items.entries_of(lane, item).tokens}
    return (
        held,
        {token for item in folded if item for token, _ in items.segment_of(lane, item)},
        upto,
    )


def strays_left(world: World, lane: Lane) -> set[bytes]:
    held, listed, upto = shelf(world, lane)
    return {token for token in held - listed if token <= upto}
