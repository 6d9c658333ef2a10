"""Budgets in coroutines: with a Ledger asked in threads and with an AsyncLedger, under cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from lab.histories.budget_calls import REGIONS, TwoRegions
from ledger.aio import AsyncLedger
from ledger.budgets import OverBudget
from ledger.errors import InvalidInput, LedgerError

CAP = 1_000
A, B, C = "llm:key-1", "llm:team-1", "llm:model-1"


class AwaitedLedger(AsyncLedger):
    """An AsyncLedger, of the loop that asks first. While `goes_on` is cleared no answer comes; `waiting` says so."""

    def __init__(self, world: TwoRegions) -> None:
        super().__init__(world.settings(), table=world.simulation.table(REGIONS[0]), clock=world.clock)
        self.goes_on, self.waiting = asyncio.Event(), asyncio.Event()
        self.goes_on.set()

    async def _run(self, *args: Any) -> Any:
        self._loop = self._loop or asyncio.get_running_loop()
        return await super()._run(*args)

    async def _answer(self, request: Any) -> Any:
        if not self.goes_on.is_set():
            self.waiting.set()
        await self.goes_on.wait()
        return await super()._answer(request)


@pytest.fixture
def world() -> TwoRegions:
    return TwoRegions(CAP)


async def cancelled_while_it_waits(ledger: AwaitedLedger, call: Coroutine[Any, Any, Any]) -> None:
    """A task is cancelled while it waits for an answer, which comes then."""
    ledger.goes_on.clear()
    task = asyncio.ensure_future(call)
    await ledger.waiting.wait()
    task.cancel()
    await asyncio.sleep(0)
    ledger.goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    while len(asyncio.all_tasks()) > 1:  # what goes on ends
        await asyncio.sleep(0)


def test_a_coroutine_reserves_and_settles_with_a_ledger_of_either_kind() -> None:
    async def calls(world: TwoRegions, ledger: Any) -> None:
        budgets = world.budgets(ledger=ledger)
        async with budgets.reserve([A, B], 600) as call:
            assert world.stands(A) == (0, 600)
            with pytest.raises(OverBudget):
                await budgets.reserve([C, B], 500).aopen()
            call.settle(250)
        for counter, end in ((C, ValueError), (A, asyncio.CancelledError)):
            with pytest.raises(end):
                async with budgets.reserve([counter], 400):
                    raise end

    for is_awaited in (False, True):
        world = TwoRegions(CAP)
        asyncio.run(calls(world, AwaitedLedger(world) if is_awaited else world.ledger()))
        assert [world.stands(counter) for counter in (A, B, C)] == [(650, 0), (250, 0), (0, 0)]


def test_a_task_that_is_cancelled_while_a_budget_is_asked_leaves_nothing_held(world: TwoRegions) -> None:
    async def main() -> None:
        ledger = AwaitedLedger(world)
        await cancelled_while_it_waits(ledger, world.budgets(ledger=ledger).reserve([A, B], 600).aopen())

    asyncio.run(main())
    assert world.stands(A) == world.stands(B) == (0, 0)


def test_a_repetition_that_is_cancelled_releases_no_hold_of_another(world: TwoRegions) -> None:
    at = world.budgets().now()
    first = world.budgets().reserve([A, B], 600, call="req-7", at=at).open()

    async def main() -> None:
        ledger = AwaitedLedger(world)
        again = world.budgets(ledger=ledger).reserve([A, B], 600, call="req-7", at=at)
        await cancelled_while_it_waits(ledger, again.aopen())

    asyncio.run(main())
    assert world.stands(A) == world.stands(B) == (0, 600)
    first.close()
    assert world.stands(A) == (600, 0)


def test_a_task_that_is_cancelled_while_it_settles_settles(world: TwoRegions) -> None:
    async def main() -> None:
        ledger = AwaitedLedger(world)
        call = await world.budgets(ledger=ledger).reserve([A], 600).aopen()
        call.settle(250)
        await cancelled_while_it_waits(ledger, call.aclose())
        assert call.ended

    asyncio.run(main())
    assert world.stands(A) == (250, 0)


def test_a_cancelled_task_says_why_it_did_not_settle_and_does_not_wait_when_it_is_cancelled_again(
    world: TwoRegions,
) -> None:
    class RefusingLedger(AwaitedLedger):
        async def capture(self, *_: Any) -> Any:
            await self.goes_on.wait()
            raise LedgerError("no")

    async def main() -> None:
        ledger = RefusingLedger(world)
        call = await world.budgets(ledger=ledger).reserve([A], 600).aopen()
        ledger.goes_on.clear()
        first, second = (asyncio.ensure_future(call.aclose()) for _ in range(2))
        for task in (first, second, second):
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        ledger.goes_on.set()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await first
        assert isinstance(cancelled.value.__cause__, LedgerError)
        assert not call.ended

    asyncio.run(main())


def test_what_a_loop_that_ends_cuts_off_is_settled_all_the_same(world: TwoRegions) -> None:
    """asyncio.run cancels every task that is left: the one that settles, and what it waits for."""
    tasks: list[asyncio.Task[None]] = []

    async def main() -> None:
        ledger = AwaitedLedger(world)

        async def call() -> None:
            async with world.budgets(ledger=ledger).reserve([A, B], 600) as call:
                call.settle(250)
                ledger.goes_on.clear()

        async def answers_at_the_end() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ledger.goes_on.set()

        tasks.extend(asyncio.ensure_future(work()) for work in (call, answers_at_the_end))
        await ledger.waiting.wait()

    asyncio.run(main())
    assert (world.stands(A), world.stands(B)) == ((250, 0), (250, 0))


def test_an_awaited_ledger_is_refused_by_a_call_that_blocks(world: TwoRegions) -> None:
    with pytest.raises(InvalidInput, match="cannot be asked by a function that blocks"):
        world.budgets(ledger=AwaitedLedger(world)).reserve([A], 1).open()
