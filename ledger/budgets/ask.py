"""How a program of this package asks a ledger: at once, in a thread, or as a coroutine.

Rule 1: a program yields functions of the ledger and takes their answers, so that there is one program for all three.
Rule 2: the ledger's calls block, so a coroutine never makes them itself: a thread does, unless they are coroutines.
Rule 3: what a cancelled task had asked for goes on to its end; half of it would be in no program's hands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from inspect import iscoroutinefunction
from typing import Any

from ledger.dynamo import aio
from ledger.errors import InvalidInput, shown
from ledger.requests import Result, drive
from ledger.settings import Settings

Program = Generator[Callable[[Any], Any], Any, Result]
"""Yields functions of the ledger. Their answers come back, and the errors of `ledger.errors` are raised in it."""

_going_on: set[asyncio.Task[Any]] = set()
"""The loop keeps no task alive."""


def check_ledger(ledger: object) -> Any:
    """A Ledger, or one whose calls are coroutines; raises InvalidInput for anything else."""
    has_calls = all(callable(getattr(ledger, name, None)) for name in ("hold_all", "capture", "release", "add"))
    if not has_calls or not isinstance(getattr(ledger, "settings", None), Settings):
        raise InvalidInput(f"Budgets are kept by a Ledger or an AsyncLedger, not by {shown(ledger)}.")
    return ledger


def is_async(ledger: Any) -> bool:
    """Whether a ledger's calls are coroutines. Of an AsyncLedger not all are functions that say so; `add` is."""
    return iscoroutinefunction(ledger.add)


def run(program: Program[Result], ledger: Any) -> Result:
    """Ask at once. Raises what the program does, and InvalidInput for a ledger whose calls are coroutines."""
    if is_async(ledger):
        program.close()
        raise InvalidInput("An AsyncLedger cannot be asked by a function that blocks: `async with`, or give a Ledger.")
    return drive(program, lambda request: request(ledger))


async def run_async(program: Program[Result], ledger: Any) -> Result:
    """Ask in threads, or await an AsyncLedger. Raises what the program does."""
    if is_async(ledger):
        return await aio.drive(program, lambda request: request(ledger))
    return await aio.drive(program, lambda request: asyncio.to_thread(request, ledger))


async def to_its_end(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """What the work answers. A task that is cancelled meanwhile waits for the end of the work and is cancelled then,
    from what failed, because the ledger may close behind it; one that is cancelled again leaves the work to go on. A
    loop that ends cancels the work, too: then it is done anew, which must change nothing that was done before.
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
    """Whether anything goes on that nobody may await: what is left of calls when the last has ended."""
    return any(not task.done() for task in _going_on)
