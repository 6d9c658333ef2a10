"""A process that keeps budgets on a simulated table, and what stands in them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest

from integrations.budgets import Budgets
from ledger import Ledger, Limit, Settings
from ledger.aio import AsyncLedger
from ledger.checks import to_datetime
from reader import Reader
from simulator import Faults, Simulation

REGIONS = ("eu-west-1", "us-east-1")
HERE, THERE = REGIONS
START = to_datetime(1_000_000)
CAP = 1_000
TIMEOUT = timedelta(minutes=1)


class Town:
    """Budgets of `CAP` in two Regions. Each `budgets` is a process of its own: nothing is shared but the table."""

    def __init__(self, *, cap: int = CAP, seed: int = 0, faults: Faults | None = None) -> None:
        self.world = Simulation(REGIONS, seed=seed, faults=faults or Faults(), start=START)
        self._limits = {"llm:": Limit(ceiling=cap, region=HERE)}

    def settings(self, region: str = HERE) -> Settings:
        return Settings(table="counters", region=region, regions=REGIONS, limits=self._limits)

    def ledger(self, region: str = HERE) -> Ledger:
        return Ledger(self.settings(region), table=self.world.table(region), clock=self.world.clock)

    def budgets(self, region: str = HERE, ledger: Any = None, timeout: timedelta = TIMEOUT) -> Budgets:
        return Budgets(ledger or self.ledger(region), timeout=timeout, clock=self.world.clock)

    def wait(self, span: timedelta) -> None:
        self.world.wait(int(span / timedelta(milliseconds=1)))

    def reader(self) -> Reader:
        return Reader(self.settings(), table=self.world.table(HERE), clock=self.world.clock)

    def spent(self, counter: str) -> int:
        return self.reader().read(counter).value

    def held(self, counter: str) -> int:
        return self.reader().standing(counter).held.up or 0

    def stands(self, counter: str) -> tuple[int, int]:
        """What is spent of a budget, and what is held."""
        return self.spent(counter), self.held(counter)


class Awaited(AsyncLedger):
    """An AsyncLedger, of the loop that asks first. Each answer waits, so that a task can be cancelled in it; `waiting`
    says that one does.
    """

    def __init__(self, town: Town) -> None:
        super().__init__(town.settings(), table=town.world.table(HERE), clock=town.world.clock)
        self.waits = asyncio.Event()
        self.waits.set()
        self.waiting = asyncio.Event()

    async def _run(self, *args: Any) -> Any:
        self._loop = self._loop or asyncio.get_running_loop()
        return await super()._run(*args)

    async def _answer(self, request: Any) -> Any:
        await asyncio.sleep(0)
        if not self.waits.is_set():
            self.waiting.set()
        await self.waits.wait()
        return await super()._answer(request)


async def cancelled_while_it_waits(ledger: Awaited, doing: Coroutine[Any, Any, Any]) -> None:
    """What is done with the ledger is cancelled while it waits for an answer, which comes then."""
    ledger.waits.clear()
    task = asyncio.ensure_future(doing)
    for _ in range(3):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    ledger.waits.set()
    with pytest.raises(asyncio.CancelledError):
        await task


async def when_the_loop_ends(then: Callable[[], object]) -> None:
    """Of a task: the loop cancels it with all that is left."""
    try:
        await asyncio.Event().wait()
    finally:
        then()


async def others_end() -> None:
    """Until no other task is left in this loop."""
    while len(asyncio.all_tasks()) > 1:
        await asyncio.sleep(0)


class Failing:
    """A ledger of which the named calls, or those of one counter, fail the first `times`, before or after they were
    made.
    """

    def __init__(
        self,
        inner: Ledger,
        name: str,
        error: BaseException,
        times: int,
        *,
        applied: bool = False,
        counter: str | None = None,
    ) -> None:
        self._inner, self._name, self._error, self.left, self._applied = inner, name, error, times, applied
        self._counter = counter

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if not callable(method):
            return method

        def call(*args: Any, **kwargs: Any) -> Any:
            if name != self._name or not self.left or self._counter not in (None, args[0]):
                return method(*args, **kwargs)
            self.left -= 1
            if self._applied:
                method(*args, **kwargs)
            raise self._error

        return call
