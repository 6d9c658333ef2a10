"""What a cancelled task had begun goes on, also where only the event loop knows of it."""

import asyncio
import gc
import weakref

from ledger.budgets import ask


def test_a_task_that_nobody_holds_goes_on_to_its_end() -> None:
    """An event loop keeps no task alive: a collection would end it in the middle."""

    async def scenario() -> bool:
        waits: list[weakref.ref[asyncio.Future[None]]] = []

        async def work() -> None:
            answer = asyncio.get_running_loop().create_future()
            waits.append(weakref.ref(answer))
            await answer

        ask.go_on(work())
        await asyncio.sleep(0)
        gc.collect()
        answer = waits[0]()
        assert answer is not None
        assert ask.going_on()
        answer.set_result(None)
        for _ in range(3):  # the work ends, and then what is called when it has
            await asyncio.sleep(0)
        return ask.going_on()

    assert asyncio.run(scenario()) is False
