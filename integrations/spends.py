"""`spending`: a function, a coroutine function or a generator that reserves before it begins.

Rule 1: of a generator the cost is the sum of what its items cost, so one that is cut off counts what it gave. One that
is given up before its first item counts its estimate, as any call.
Rule 2: where the cost of a result or an item cannot be told, the estimate counts: it was paid for.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, closing
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import TYPE_CHECKING, Any

from integrations.reserving import check_cost
from ledger.errors import InvalidInput, shown

if TYPE_CHECKING:
    from integrations.budgets import Call


def spending(function: Any, reserved: Callable[..., Call], cost: Callable[[Any], int]) -> Any:
    """Raises InvalidInput for what is no function."""
    for fits, wrapper in KINDS:
        if fits(function):
            return functools.wraps(function)(wrapper(function, reserved, cost))
    raise InvalidInput(f"spends decorates a function, not {shown(function)}.")


def _function(function: Any, reserved: Callable[..., Call], cost: Callable[[Any], int]) -> Any:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with reserved(*args, **kwargs) as call:
            result = function(*args, **kwargs)
            call.settle(call.estimate)
            call.settle(cost(result))
            return result

    return wrapper


def _coroutine(function: Any, reserved: Callable[..., Call], cost: Callable[[Any], int]) -> Any:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        async with reserved(*args, **kwargs) as call:
            result = await function(*args, **kwargs)
            call.settle(call.estimate)
            call.settle(cost(result))
            return result

    return wrapper


def _generator(function: Any, reserved: Callable[..., Call], cost: Callable[[Any], int]) -> Any:
    def wrapper(*args: Any, **kwargs: Any) -> Iterator[Any]:
        with reserved(*args, **kwargs) as call, closing(function(*args, **kwargs)) as items:
            spent = 0
            for item in items:
                spent = _summed(call, spent, cost, item)
                yield item
            call.settle(spent)

    return wrapper


def _async_generator(function: Any, reserved: Callable[..., Call], cost: Callable[[Any], int]) -> Any:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        async with reserved(*args, **kwargs) as call, aclosing(function(*args, **kwargs)) as items:
            spent = 0
            async for item in items:
                spent = _summed(call, spent, cost, item)
                yield item
            call.settle(spent)

    return wrapper


def _summed(call: Call, spent: int, cost: Callable[[Any], int], item: Any) -> int:
    """What the items cost, with this one."""
    call.settle(max(spent, call.estimate))
    spent += check_cost("cost", cost(item))
    call.settle(spent)
    return spent


KINDS: tuple[tuple[Callable[[Any], bool], Callable[..., Any]], ...] = (
    (iscoroutinefunction, _coroutine),
    (isasyncgenfunction, _async_generator),
    (isgeneratorfunction, _generator),
    (callable, _function),
)
