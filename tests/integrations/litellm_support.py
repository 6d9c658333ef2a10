"""LiteLLM with a provider that a test holds in its hands; its mock responses do the rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import litellm
from litellm import CustomLLM
from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

from integrations import asked
from integrations.litellm import LedgerBudgets
from tests.integrations.support import TIMEOUT, Town

MODEL = "ours/small"
PRICES = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "litellm_provider": "ours", "mode": "chat"}
HELLO = [{"role": "user", "content": "hello"}]
INPUT = 8
"""LiteLLM's count of the tokens in HELLO, a micro-dollar each."""


class Provider(CustomLLM):  # type: ignore[misc]
    """An answer is 5 and 3 tokens, 11 micro-dollars; a stream gives words, and waits for `go_on` before the last."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.failures: list[Exception] = []
        self.go_on = asyncio.Event()
        self.go_on.set()
        self._called = asyncio.Condition()

    async def called(self, calling: asyncio.Future[Any], times: int = 1) -> None:
        """Until it was called so often; raises what `calling` does when that ends before."""
        came = asyncio.ensure_future(self._came(times))
        await asyncio.wait((came, calling), return_when=asyncio.FIRST_COMPLETED)
        if not came.done():
            came.cancel()
            calling.result()

    async def _came(self, times: int) -> None:
        async with self._called:
            await self._called.wait_for(lambda: self.calls >= times)

    async def _call(self) -> None:
        async with self._called:
            self.calls += 1
            self._called.notify_all()

    async def acompletion(self, *args: Any, **kwargs: Any) -> Any:
        await self._call()
        await self.go_on.wait()
        if self.failures:
            raise self.failures.pop(0)
        usage = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
        return litellm.ModelResponse(choices=[{"message": {"role": "assistant", "content": "hi"}}], usage=usage)

    async def astreaming(self, *args: Any, **kwargs: Any) -> AsyncIterator[dict[str, Any]]:
        await self._call()
        for n in range(4):
            if n == 3:
                await self.go_on.wait()
                if self.failures:
                    raise self.failures.pop(0)
            yield {
                "text": "word ",
                "is_finished": n == 3,
                "finish_reason": "stop" if n == 3 else "",
                "index": 0,
                "tool_use": None,
                "usage": None,
            }


@contextmanager
def installed(provider: Provider, *budgets: LedgerBudgets) -> Iterator[None]:
    """LiteLLM calls these hooks and this provider, and nothing calls home."""
    litellm.telemetry = False
    litellm.custom_provider_map = [{"provider": "ours", "custom_handler": provider}]
    litellm.utils.custom_llm_setup()
    litellm.register_model({MODEL: PRICES, "ours/dear": PRICES | {"output_cost_per_token": 20e-6}})
    before = list(litellm.callbacks)
    litellm.callbacks.extend(budgets)
    try:
        yield
    finally:
        litellm.callbacks[:] = before
        for name in ("success_callback", "failure_callback", "_async_success_callback", "_async_failure_callback"):
            there = getattr(litellm, name)
            there[:] = [each for each in there if each not in budgets]
        litellm.input_callback[:] = [each for each in litellm.input_callback if each not in budgets]


@contextmanager
def dearer(model: str, price: float) -> Iterator[None]:
    """Another price of an answer's token meanwhile."""
    litellm.register_model({model: PRICES | {"output_cost_per_token": price}})
    try:
        yield
    finally:
        litellm.register_model({model: PRICES})


def by_user(caller: Any) -> Iterable[str]:
    return [f"llm:{caller['user']}"]


def hooks(town: Town, **given: Any) -> LedgerBudgets:
    ledger = given.pop("ledger", None) or town.ledger()
    return LedgerBudgets(ledger, given.pop("counters", by_user), timeout=TIMEOUT, clock=town.world.clock, **given)


async def all_ended(*budgets: LedgerBudgets) -> None:
    """Until every call has ended and is settled, and LiteLLM has logged what it logs, in tasks of its own."""
    while any(len(each.open) for each in budgets) or asked.going_on():
        await GLOBAL_LOGGING_WORKER.flush()
        await asyncio.sleep(0.001)
    await GLOBAL_LOGGING_WORKER.flush()


async def all_decided(provider: Provider, calls: Iterable[asyncio.Future[Any]]) -> None:
    """Until each call has come to the provider, or has its answer."""
    calls = list(calls)
    while provider.calls + sum(each.done() for each in calls) < len(calls):
        await asyncio.sleep(0.001)
