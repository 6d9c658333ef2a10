"""LiteLLM with a provider that a test holds in its hands; its mock responses do the rest."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import litellm
from exact_counter.budgets import going_on
from lab.histories.parts.budgets import TIMEOUT, TwoRegions
from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

from ledger_litellm import LedgerBudgets

MODEL = "ours/small"
PRICES = {
    "input_cost_per_token": 1e-6,
    "output_cost_per_token": 2e-6,
    "litellm_provider": "ours",
    "mode": "chat",
}
HELLO = [{"role": "user", "content": "hello"}]
INPUT = 8  # LiteLLM's count of the tokens in HELLO, a micro-dollar each


class Provider(litellm.CustomLLM):
    """An answer is 5 and 3 tokens, 11 micro-dollars; a stream gives four words.

    The last waits for `goes_on`.
    """

    def __init__(self, *failures: Exception) -> None:
        super().__init__()
        self.calls, self._failures = 0, [*failures]
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def called(self, times: int = 1) -> None:
        while self.calls < times:
            await asyncio.sleep(0.001)

    async def _ends(self) -> None:
        await self.goes_on.wait()
        if self._failures:
            raise self._failures.pop(0)

    async def acompletion(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        await self._ends()
        usage = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
        return litellm.ModelResponse(
            choices=[{"message": {"role": "assistant", "content": "hi"}}], usage=usage
        )

    async def astreaming(self, *args: Any, **kwargs: Any) -> AsyncIterator[dict[str, Any]]:
        self.calls += 1
        for n in range(4):
            if n == 3:
                await self._ends()
            end = {"is_finished": n == 3, "finish_reason": "stop" if n == 3 else "", "index": 0}
            yield {"text": "word ", "tool_use": None, "usage": None, **end}


class TurnedLoop(asyncio.SelectorEventLoop):
    """A loop whose time can be turned on, for what waits to be tried again."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s


@contextmanager
def installed(*hooks: Any, provider: Provider | None = None) -> Iterator[None]:
    """LiteLLM calls these hooks and this provider, says nothing itself, and nothing calls home."""
    litellm.telemetry, litellm.suppress_debug_info = False, True
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    litellm.custom_provider_map = [{"provider": "ours", "custom_handler": provider or Provider()}]
    litellm.utils.custom_llm_setup()
    litellm.register_model({MODEL: PRICES, "ours/dear": PRICES | {"output_cost_per_token": 20e-6}})
    before = {name: [*callbacks] for name, callbacks in _callbacks().items()}
    litellm.callbacks.extend(hooks)
    try:
        yield
    finally:
        for name, callbacks in _callbacks().items():
            callbacks[:] = before[name]


def _callbacks() -> dict[str, list[Any]]:
    lists = {
        name: getattr(litellm, name)
        for name in dir(litellm)
        if name.endswith(("callback", "callbacks"))
    }
    return {name: found for name, found in lists.items() if isinstance(found, list)}


def hooks(world: TwoRegions, **given: Any) -> LedgerBudgets:
    """Budgets of each `user=`, unless others are given."""
    given = {
        "ledger": world.ledger(),
        "counters": lambda caller: [f"llm:{caller['user']}"],
        **given,
    }
    return LedgerBudgets(
        given.pop("ledger"), given.pop("counters"), timeout=TIMEOUT, clock=world.clock, **given
    )


async def all_ended(*budgets: LedgerBudgets) -> None:
    """Until every call has ended and is settled, and LiteLLM has logged what it logs, in tasks
    of its own.
    """
    while any(len(hooks.open) for hooks in budgets) or going_on():
        await GLOBAL_LOGGING_WORKER.flush()
        await asyncio.sleep(0.001)
    await GLOBAL_LOGGING_WORKER.flush()
