"""Where designs are tried: a simulated table in two Regions, and a table of an engine; and answers that are lost."""

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Protocol, Self

import pytest
from mypy_boto3_dynamodb.client import DynamoDBClient

from lab.designs.clients import config, table_of
from lab.designs.design import Design, Outcome
from lab.designs.simulated import Simulated, Task
from lab.engines.ministack import Engine
from ledger.errors import OutcomeUnknown, TableError
from ledger.lane.tail import through
from ledger.requests import Instant, Program, Request, Result, Transact, Write, run
from ledger.table import DynamoTable
from simulator.choices import Drawn
from simulator.faults import NONE, Faults
from simulator.world import World

EU, US = "eu-west-1", "us-east-1"
C = "stock:85123A"
START_MS = 1_800_000_000_000


class Place(Protocol):
    """Where a program can be run."""

    def run(self, program: Program[Result], region: str = EU) -> Result: ...


class OnWorld:
    """A simulated table in two Regions, and what is tried on it one after another or at once."""

    def __init__(self, seed: int = 0, **given: Any) -> None:
        self.world = World((EU, US), Drawn(seed), page_size=100, **{"lag_steps": 0, **given})
        self.world.now_ms = START_MS
        self.simulated = Simulated(self.world)

    def run(self, program: Program[Result], region: str = EU) -> Result:
        return self.simulated.run(program, region)

    def at_once(self, *programs: Callable[[], Program[Any]], sdk_attempts: int = 1, faults: Faults = NONE) -> list[Any]:
        """What each of some programs in the first Region came to, their steps in any order."""
        return self.simulated.play([Task(EU, program, sdk_attempts) for program in programs], faults)

    def wait(self, ms: int) -> None:
        self.world.now_ms += ms


@cache
def client_of(engine: Engine) -> DynamoDBClient:
    """One that sends nothing twice. It takes longer to make than most tests."""
    return engine.client(EU, config(1))


@dataclass
class OnEngine:
    """A new table of an engine."""

    table: DynamoTable
    client: Any
    clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000

    @classmethod
    def of(cls, engine: Engine, name: str) -> Self:
        client = client_of(engine)
        engine.create_table(name, EU, client)
        return cls(table_of(name, client, pause=lambda s: None), client)

    def run(self, program: Program[Result], region: str = EU) -> Result:
        return run(program, self.table, lambda: Instant(self.clock(), 0))


def unanswered(program: Program[Result], writes: Collection[int]) -> Program[Result]:
    """Lose the answers to these writes of a program (from 0 on): they are applied, and it is told OutcomeUnknown."""
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


def add(place: Place, design: Design, key: str, change: int = 1, region: str = EU) -> Outcome:
    return place.run(design.add(C, change, key, START_MS), region)


def value(place: Place, design: Design, region: str = EU) -> int:
    return place.run(design.value(C), region)


def adds(design: Design, count: int, change: int = 1) -> list[Callable[[], Program[Outcome]]]:
    return [partial(design.add, C, change, f"key-{number}", START_MS) for number in range(count)]


def deliveries(design: Design, count: int = 6) -> list[Callable[[], Program[Outcome]]]:
    """Changes of powers of 4, each sent until it is answered: a sum says which of them it holds."""
    return [partial(until_answered, design, 4**number, f"key-{number}") for number in range(count)]


@pytest.fixture
def on_engine(engine: Engine, table_names: Iterator[str]) -> OnEngine:
    """A new table of the embedded engine."""
    return OnEngine.of(engine, next(table_names))


@pytest.fixture
def on_world() -> OnWorld:
    """A new simulated table in two Regions."""
    return OnWorld()


@pytest.fixture(params=["on_world", "on_engine"])
def anywhere(request: pytest.FixtureRequest) -> Place:
    """A new table, simulated or of the embedded engine."""
    made: Place = request.getfixturevalue(request.param)
    return made
