"""A part that a small cast plugs into its stage: the steps that it can take, and each process's
answers.

Rule 1: a cast is a table of steps, and a step is a call of a method of its part. What a cast does
before its processes begin happens at once and without a fault.
Rule 2: the answers of each process are kept, because a process that had the same answers is in the
same state.
Rule 3: what a request does to several items, which are not one transaction, happens one by one
where a part says so.
"""

from collections.abc import Callable, Generator, Sequence
from functools import partial, wraps
from operator import methodcaller
from typing import Any

from lab.histories.stage.judge import ended, found
from lab.histories.stage.stage import REGIONS, Stage, finish
from ledger.core.errors import GaveUp, LedgerError
from ledger.core.requests import (
    At,
    DeleteMany,
    Key,
    Pause,
    Program,
    Put,
    PutMany,
    Request,
    Together,
    Update,
)
from ledger.core.running import through
from simulator.choices import Replayed
from simulator.process import Log, Process, Script
from simulator.world import World

HOME, AWAY = REGIONS[:2]
Casts = dict[str, Sequence[methodcaller]]


class Steps:
    """`do.fold()` is a step of a cast: the call of a part's method, once there is a part."""

    def __getattr__(self, name: str) -> Callable[..., methodcaller]:
        return partial(methodcaller, name)


do = Steps()


def process(method: Callable[..., Program[object]]) -> Callable[..., None]:
    """A step that lets loose a process, in a Region, with the program that the method makes for
    it.
    """

    @wraps(method)
    def step(self: "Part", *given: Any, region: str = HOME, name: str = "", **named: Any) -> None:
        self.enter(
            method(self, region, *given, **named), region, name or f"{method.__name__} in {region}"
        )

    return step


class Part:
    kind: type[World] = World
    one_by_one: tuple[type, ...] = (DeleteMany,)
    """Requests to several items that are gone through item by item."""
    time_goes = False
    """Whether it matters when a process asks for the time."""
    stops = True
    """Whether everything stops in every state, or only at the end."""
    steps_max = 1_000
    """A cast whose processes could go on for long is gone through up to so many steps."""
    resends = False
    """Whether every Update and Put is sent twice, as an SDK may: it had no answer the first time.
    """
    passes_ms = 0
    """So much time passes, at some moment."""

    def __init__(self, order: tuple[int, ...], log: Log | None = None) -> None:
        self.choices, self.order = Replayed(order), order
        self.world = self.kind((HOME, AWAY), self.choices, page_size=10, lag_steps=0)
        self.stage = Stage(self.world, log=log)
        self.answers: list[list[int]] = []
        self.failures: list[LedgerError] = []

    @property
    def processes(self) -> list[Process]:
        return self.stage.processes

    def may_fail(self, error: LedgerError) -> bool:
        """Whether a process may fail so."""
        return True

    def seen(self) -> list[str]:
        """What is wrong so far."""
        return found(self.stage.judges) or [
            f"{type(error).__name__}: {error}"
            for error in self.failures
            if not self.may_fail(error)
        ]

    def judged(self) -> list[str]:
        """What is wrong if everything stops here."""
        return ended(self.stage.judges)

    def known(self) -> object:
        """What decides the judgement, besides the world and the answers."""
        return [judge.known() for judge in self.stage.judges]

    def decides(self) -> object | None:
        """All that decides `judged`, besides the world; None: every state is judged by itself."""
        return None

    def arrivals(self) -> list[tuple[str, Key]]:
        """What may arrive in another Region now, and be noticed there."""
        busy = {process.region for process in self.processes if not process.done}
        return [(region, key) for region, key in self.world.deliverable() if region in busy]

    def expiries(self) -> list[tuple[str, Key]]:
        """What the table may delete now because its time is over."""
        return []

    def alone(self, program: Program[object]) -> None:
        finish(self.world, HOME, program)

    def wait(self, ms: int) -> None:
        self.world.now_ms += ms

    def having(self, **given: object) -> None:
        """What a part says of itself is this in a cast."""
        for name, value in given.items():
            setattr(self, name, value)

    def time_passes(self) -> None:
        self.wait(self.passes_ms)
        self.passes_ms = 0

    def enter(self, program: Program[object], region: str, name: str) -> None:
        """A process that runs one program; its failures end it, as they end a visit."""
        self.world.step = 1
        answers: list[int] = []
        twin = "2" if any(process.name == name for process in self.processes) else ""

        def step(request: Request) -> Generator[Any, Any, Any]:
            if isinstance(request, Pause):  # whatever may happen in it may happen between two steps
                return None
            parts = self._parts(request)
            came: list[Any] = []
            try:
                if self.resends and isinstance(
                    request.request if isinstance(request, At) else request, Update | Put
                ):
                    yield request
                    answers.append(0)
                for part in parts or (request,):
                    came.append((yield part))
                    answers.append(hash(repr(came)))
            except LedgerError as error:
                answers.append(hash(repr(error)))
                raise
            return tuple(each for answer in came for each in answer) if parts else came[0]

        def script() -> Script:
            try:
                yield from through(program, step)
            except (GaveUp, LedgerError) as error:
                self.failures.append(error)

        self.answers.append(answers)
        self.stage.enter(f"{name} {twin}".strip(), region, script)

    def _parts(self, request: Request) -> list[Request]:
        match request:
            case At(region, inner):
                return [At(region, part) for part in self._parts(inner)]
            case _ if not isinstance(request, self.one_by_one):
                return []
            case DeleteMany(several) | PutMany(several):
                return [type(request)((item,)) for item in several]
            case Together(requests):
                return [Together((each,)) for each in requests]
            case _:
                return []
