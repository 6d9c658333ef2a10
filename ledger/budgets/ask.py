"""How a program of this package calls a ledger: directly, in a thread, or as a coroutine.

Rule 1: a program yields functions of the ledger and takes their answers, so that there is one
program for all three.
Rule 2: the ledger's calls block, so a coroutine never makes them itself: a thread does, unless they
are coroutines.
Rule 3: a call that a cancelled task had begun goes on to its end; else no program would know about
half of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from inspect import iscoroutinefunction
from typing import Any

from ledger.core.errors import InvalidInput, shown
from ledger.core.requests import Result
from ledger.core.running import drive
from ledger.core.settings import Settings
from ledger.tables import aio

Program = Generator[Callable[[Any], Any], Any, Result]
"""Yields functions of the ledger, and gets their answers or the errors that they raise."""

_going_on: set[asyncio.Task[Any]] = set()
"""The tasks that go on, because an event loop keeps no task alive itself."""


def once(call: Callable[[Any], Result]) -> Program[Result]:
    """The program of one call of the ledger."""
    answer: Result = yield call
    return answer


def check_ledger(ledger: object) -> Any:
    """`ledger` itself; raises InvalidInput unless it is a Ledger, or one whose calls are
    coroutines.
    """
    has_calls = all(
        callable(getattr(ledger, name, None)) for name in ("hold_all", "capture", "release", "add")
    )
    if not has_calls or not isinstance(getattr(ledger, "settings", None), Settings):
        raise InvalidInput(
            f"Budgets are kept by a Ledger or an AsyncLedger, not by {shown(ledger)}."
        )
    return ledger


def is_async(ledger: Any) -> bool:
    """Whether a ledger's calls are coroutines.

    Not every method of an AsyncLedger is a coroutine function; `add` is.
    """
    return iscoroutinefunction(ledger.add)


def run(program: Program[Result], ledger: Any) -> Result:
    """Run a program with calls that block.

    Raises what it raises, and InvalidInput for a ledger with coroutines.
    """
    if is_async(ledger):
        program.close()
        raise InvalidInput(
            "A call that blocks got an AsyncLedger. Nothing was written. Use `async with`, or give "
            "Budgets a Ledger."
        )
    return drive(program, lambda request: request(ledger))


async def run_async(program: Program[Result], ledger: Any) -> Result:
    """Run a program with calls in threads, or await those of an AsyncLedger.

    Raises what the program raises.
    """
    if is_async(ledger):
        return await aio.drive(program, lambda request: request(ledger))
    return await aio.drive(program, lambda request: asyncio.to_thread(request, ledger))


async def to_its_end(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """The result of the work. A task that is cancelled meanwhile waits for the end of the work and
    is cancelled then, from what failed, because the ledger may close behind it. A task that is
    cancelled again leaves the work to go on. A loop that ends cancels the work, too: then the work
    runs once more, and that must change nothing that it did before.
    """
    task = go_on(work())
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError as cancelled:
        await asyncio.wait([task])
        if task.cancelled():
            task = go_on(work())
            await asyncio.wait([task])
        raise cancelled from (None if task.cancelled() else task.exception())


def go_on(work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
    """A task that goes on when the task that awaits its shield is cancelled."""
    task = asyncio.ensure_future(work)
    _going_on.add(task)
    task.add_done_callback(_going_on.discard)
    return task


def going_on() -> bool:
    """Whether any task goes on that nobody may await, after the last call has ended."""
    return any(not task.done() for task in _going_on)
