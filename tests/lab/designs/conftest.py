"""Where designs are tried: a simulated table in two Regions; and deliveries that fail."""

from collections.abc import Callable, Collection
from typing import Any

from lab.designs.design import Design, Outcome
from lab.designs.simulated import Simulated, Task
from ledger.errors import OutcomeUnknown, TableError
from ledger.lane.tail import through
from ledger.requests import Program, Request, Result, Transact, Write
from simulator.choices import Drawn
from simulator.faults import NONE, Faults
from simulator.world import World

EU, US = "eu-west-1", "us-east-1"
C = "stock:85123A"
START_MS = 1_800_000_000_000


class OnWorld:
    """A simulated table in two Regions, and what is tried on it one after another or at once."""

    def __init__(self, seed: int = 0) -> None:
        self.world = World((EU, US), Drawn(seed), page_size=100, lag_steps=0)
        self.world.now_ms = START_MS
        self.simulated = Simulated(self.world)

    def run(self, program: Program[Result], region: str = EU) -> Result:
        return self.simulated.run(program, region)

    def at_once(self, *programs: Callable[[], Program[Any]], sdk_attempts: int = 1, faults: Faults = NONE) -> list[Any]:
        """What each of some programs in the first Region came to, their steps in any order."""
        return self.simulated.play([Task(EU, program, sdk_attempts) for program in programs], faults)

    def wait(self, ms: int) -> None:
        self.world.now_ms += ms


def unanswered(program: Program[Result], writes: Collection[int]) -> Program[Result]:
    """Lose the answers to these writes of a program (from 0 on): they are applied, and it gets OutcomeUnknown."""
    number = -1

    def step(request: Request) -> Program[Any]:
        nonlocal number
        answer = yield request
        number += isinstance(request, Write | Transact)
        if isinstance(request, Write | Transact) and number in writes:
            raise OutcomeUnknown("The answer was lost.")
        return answer

    return through(program, step)


def until_answered(design: Design, change: int, key: str, tries: int = 60) -> Program[Outcome]:
    """What an at-least-once caller does: the same again, until there is an answer."""
    for _ in range(tries):
        try:
            return (yield from design.add(C, change, key, START_MS))
        except TableError:
            continue
    raise AssertionError(f"{design.name} never answered")


def add(world: OnWorld, design: Design, key: str, change: int = 1, region: str = EU) -> Outcome:
    return world.run(design.add(C, change, key, START_MS), region)


def value(world: OnWorld, design: Design, region: str = EU) -> int:
    return world.run(design.value(C), region)


def settle(world: OnWorld, design: Design) -> None:
    """All that is scheduled is done in both Regions; several times, because some things take several visits."""
    for _ in range(3):
        for region in (EU, US):
            world.run(design.housekeep(C, region), region)
