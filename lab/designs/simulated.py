"""The designs on `simulator.world`: their programs as scripts of processes, with lag, lost answers and two Regions.

Rules: nothing is decided here that DynamoDB or its SDK would not decide: the SDK sends again what got no answer, up to
the design's number of attempts; conflicts and throttling are tried again as in `table.py`; a ClientRequestToken is
remembered for ten minutes, in its own Region, by the clock of the world. Another table is a prefix of its keys.
Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lab.designs import writes
from lab.designs.writes import Answer, Ask, DeleteItem, Pause, Program, PutItem, Result, Transaction, UpdateItem
from ledger.errors import LedgerError, OutcomeUnknown, Throttled, TokenConflict, TransactionConflict, Unavailable
from ledger.requests import Item, Key, Request
from ledger.table import TRIES_MAX
from ledger.through import through
from simulator.faults import NONE, Faults
from simulator.happening import by_itself
from simulator.process import Process, Sleep
from simulator.world import World, Write, Writes

TOKEN_MS = 600_000
STEPS_MAX = 200_000
Steps = Generator[Request | Writes | Sleep, Any, Result]


@dataclass(frozen=True, slots=True)
class Task:
    """A program to run in a Region: made again after a crash, as a message is delivered again."""

    region: str
    make: Callable[[], Program[Any]]
    sdk_attempts: int = 1


class Simulated:
    """A world that answers the designs' requests, and remembers ClientRequestTokens."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._tokens: dict[tuple[str, str], tuple[Transaction, int]] = {}

    def play(self, tasks: Sequence[Task], faults: Faults = NONE) -> list[Any]:
        """Run all at once, their steps in an order that the world chooses. For each, what it returned or its error."""
        ends: list[Any] = [None] * len(tasks)

        def script(number: int, task: Task) -> Generator[Any, Any, None]:
            try:
                ends[number] = yield from self.steps(task.make(), task.region, task.sdk_attempts)
            except LedgerError as error:
                ends[number] = error

        processes = [
            Process(str(number), task.region, partial(script, number, task), self.world, faults, None)
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

    def _persist(self, request: Ask, region: str, sdk_attempts: int) -> Steps[Any]:
        """Send it; again while the failure is one that passes, or one that the SDK sends again."""
        unknown: LedgerError | None = None
        for attempt in range(TRIES_MAX):
            try:
                return (yield from self._send(request, region))
            except (Throttled, TransactionConflict) as error:
                failure: LedgerError = unknown or error
            except (OutcomeUnknown, Unavailable) as error:
                failure = unknown = error
                if attempt + 1 >= sdk_attempts:
                    raise
            yield Sleep(1 + self.world.choices.pick(2**attempt))
        raise failure

    def _send(self, request: Ask, region: str) -> Steps[Any]:
        match request:
            case Pause():
                yield Sleep(1 + self.world.choices.pick(2**request.doublings))
                return None
            case UpdateItem() | PutItem() | DeleteItem():
                answers = yield from self._transact(Transaction((request,)), region)
                return None if answers is None else answers[0]
            case Transaction():
                return (yield from self._transact(request, region))
            case _:
                return (yield request)

    def _transact(self, transaction: Transaction, region: str) -> Steps[tuple[Answer, ...] | None]:
        refused: dict[int, Item] = {}
        again: list[Transaction] = []
        """What the token stands for, when it was used before."""

        def holds(number: int, write: writes.Write, there: Item | None) -> bool:
            used, at_ms = self._tokens.get((region, transaction.token or ""), (None, 0))
            if used is not None and self.world.now_ms - at_ms <= TOKEN_MS:
                again.append(used)
                return False
            if not write.holds(there):
                refused[number] = there or {}
            return number not in refused

        def becomes(write: writes.Write, there: Item | None) -> Item | None:
            after = write.becomes(there)
            if transaction.token is not None:  # all conditions held: it is decided
                self._tokens[region, transaction.token] = transaction, self.world.now_ms
            return after

        written = yield Writes(
            tuple(
                Write(_key(write), partial(becomes, write), partial(holds, number, write))
                for number, write in enumerate(transaction.writes)
            )
        )
        if again and again[-1] != transaction:
            raise TokenConflict("The token was used for another transaction. Nothing was written.")
        if written or again:
            return None
        return tuple(refused.get(number) for number in range(len(transaction.writes)))


def _key(write: writes.Write) -> Key:
    return Key(f"{write.table}|{write.key.pk}", write.key.sk) if write.table else write.key
