"""The designs on `simulator.world`: their programs as scripts of processes, with lag, lost answers
and two Regions.

Rule 1: Nothing is decided here that DynamoDB or its SDK would not decide: the SDK sends again what
got no answer, up to the design's number of attempts.
Rule 2: Conflicts and throttling are tried again as in `ledger.table`.
Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lab.designs.design import PAUSE_MS
from ledger.core.errors import (
    LedgerError,
    OutcomeUnknown,
    Throttled,
    TransactionConflict,
    Unavailable,
)
from ledger.core.requests import Pause, Program, Request, Result
from ledger.core.running import through
from ledger.tables.send import TRIES_MAX
from simulator.faults import NONE, Faults
from simulator.happening import by_itself
from simulator.process import Process, Sleep
from simulator.world import World

STEPS_MAX = 200_000
Steps = Generator[Request | Sleep, Any, Result]


@dataclass(frozen=True, slots=True)
class Task:
    """A program to run in a Region: made again after a crash, as a message is delivered again."""

    region: str
    make: Callable[[], Program[Any]]
    sdk_attempts: int = 1


class Simulated:
    """A world in which the programs of designs run."""

    def __init__(self, world: World) -> None:
        self.world = world

    def play(self, tasks: Sequence[Task], faults: Faults = NONE) -> list[Any]:
        """Run all at once, their steps in an order that the world chooses.

        For each, what it returned or its error.
        """
        ends: list[Any] = [None] * len(tasks)

        def script(number: int, task: Task) -> Generator[Any, Any, None]:
            try:
                ends[number] = yield from self.steps(task.make(), task.region, task.sdk_attempts)
            except LedgerError as error:
                ends[number] = error

        processes = [
            Process(
                str(number), task.region, partial(script, number, task), self.world, faults, None
            )
            for number, task in enumerate(tasks)
        ]
        for _ in range(STEPS_MAX):
            if all(process.done for process in processes):
                return ends
            self.world.step += 1
            self.world.now_ms += self.world.step_ms
            by_itself(self.world, faults, lambda what, came: None)
            ready = [process for process in processes if process.ready]
            if ready:
                ready[self.world.choices.pick(len(ready))].step()
        raise AssertionError(f"not over after {STEPS_MAX} steps")

    def run(self, program: Program[Result], region: str, sdk_attempts: int = 1) -> Result:
        """Run one program alone, with no faults."""
        (end,) = self.play([Task(region, lambda: program, sdk_attempts)])
        if isinstance(end, LedgerError):
            raise end
        result: Result = end
        return result

    def steps(self, program: Program[Result], region: str, sdk_attempts: int = 1) -> Steps[Result]:
        """A program as the script of a Process."""
        return through(program, lambda request: self._persist(request, region, sdk_attempts))

    def _persist(self, request: Request, region: str, sdk_attempts: int) -> Steps[Any]:
        """Send it; again while the failure is one that passes, or one that the SDK sends again."""
        unknown: LedgerError | None = None
        for attempt in range(TRIES_MAX):
            try:
                if isinstance(request, Pause):
                    yield Sleep(1 + self.world.choices.pick(int(request.ms // PAUSE_MS)))
                    return None
                return (yield request)
            except (Throttled, TransactionConflict) as error:
                failure: LedgerError = unknown or error
            except (OutcomeUnknown, Unavailable) as error:
                failure = unknown = error
                if attempt + 1 >= sdk_attempts:
                    raise
            yield Sleep(1 + self.world.choices.pick(2**attempt))
        raise failure
