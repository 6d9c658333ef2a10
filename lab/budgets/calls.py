"""The calls: each customer's at once, from two processes, one a Region.

Rule 1: all calls of a customer bear one name, as of a gateway whose clients name their calls: no budget may rest on it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from random import Random
from typing import Any
from unittest.mock import patch

from lab.budgets.caps import CAP, DEAR, ESTIMATE, FAULTS, LONGEST, REGIONS, TIMEOUT, World
from lab.budgets.verdict import Figures, judge
from ledger.errors import LedgerError, LimitReached
from ledger.gate import gates as gates_module
from simulator import Faults

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # prices from the package, not from the network

ASKED: dict[str, Any] = {
    "model": "gpt-4o",
    "messages": [{"role": "user", "content": "hello"}],
    "max_tokens": LONGEST,
}
ENDS = ["answered"] * 13 + ["dear"] + ["left"] * 2 + ["failed"] * 2 + ["died"] * 2
"""How the calls of a customer end: answered, answered for more than the estimate, left in the middle of a stream,
failed, or with their process.
"""

AT_ONCE = 4
"""So many customers call at the same time."""


REMEMBERED_MS = 20
"""How long a process remembers that a Region did not answer: here a request takes a millisecond, and a second would be
most of the run."""


class Turned(asyncio.SelectorEventLoop):
    """A loop whose time can be turned on, for what waits to be tried again."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s


class Processes:
    """LedgerBudgets of each Region."""

    def __init__(self, world: World, figures: Figures) -> None:
        from integrations.litellm import LedgerBudgets

        self._figures = figures
        self.hooks = {
            region: LedgerBudgets(
                world.ledger(region), counters_in(region), timeout=TIMEOUT, clock=world.simulation.clock
            )
            for region in REGIONS
        }

    async def call(self, customer: str, region: str, end: str) -> None:
        import litellm

        try:
            await self._ends(customer, region, end)
            outcome = end
        except (litellm.BudgetExceededError, LimitReached):
            outcome = "refused"
        except litellm.InternalServerError:
            outcome = "failed"
        except (litellm.ServiceUnavailableError, LedgerError):
            outcome = "undecided"
        self._figures.calls[customer][outcome] += 1

    async def _ends(self, customer: str, region: str, end: str) -> None:
        import litellm

        hooks = self.hooks[region]
        asked = ASKED | {"user": customer, "metadata": {"organization": region}, "litellm_call_id": customer}
        if end == "died":
            await hooks.budgets.reserve([f"llm:{customer}"], ESTIMATE).aopen()
        elif end == "left":
            async with aclosing(
                hooks.stream(await litellm.acompletion(**asked, **answer_of(end), stream=True))
            ) as chunks:
                await anext(chunks)
        else:
            await litellm.acompletion(**asked, **answer_of(end))

    async def settled(self) -> None:
        """Until no call is open; what could not be settled is tried again after a while."""
        while any(len(hooks.open) for hooks in self.hooks.values()):
            Turned.ahead_s += 10
            await asyncio.sleep(0.05)
        for _ in range(20):
            Turned.ahead_s += 10
            await asyncio.sleep(0.05)


def answer_of(end: str) -> dict[str, Any]:
    """What the provider answers."""
    import litellm

    if end == "failed":
        return {"mock_response": RuntimeError("the provider is down")}
    if end == "dear":
        usage = {"prompt_tokens": 8, "completion_tokens": DEAR // 10 - 2, "total_tokens": DEAR // 10 + 6}
        choices = [{"message": {"role": "assistant", "content": "longer than was asked for"}}]
        return {"mock_response": litellm.ModelResponse(model="gpt-4o", choices=choices, usage=usage)}
    return {"mock_response": "a mock of twenty tokens"}


def counters_in(region: str) -> Any:
    return lambda caller: [f"llm:{caller['user']}"] if caller.get("organization") == region else []


@contextmanager
def called_back(*hooks: Any) -> Iterator[None]:
    """LiteLLM calls these hooks, and says nothing itself."""
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    litellm.callbacks = [*hooks]
    try:
        yield
    finally:
        for name in dir(litellm):
            if name.endswith(("callback", "callbacks")) and isinstance(there := getattr(litellm, name), list):
                there[:] = [each for each in there if each not in hooks]


async def all_at_once(customers: list[str], call: Any) -> None:
    """The calls of a customer at once, every other one in the other Region; some customers at a time."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def of(customer: str) -> None:
        ends = Random(customer).sample(ENDS, len(ENDS))
        async with turn:
            await asyncio.gather(*(call(customer, REGIONS[n % 2], end) for n, end in enumerate(ends)))

    await asyncio.gather(*(of(customer) for customer in customers))


async def naively(customer: str, region: str, end: str) -> None:
    """The same call, beside the naive tracker."""
    import litellm

    with suppress(litellm.BudgetExceededError, litellm.InternalServerError):
        await litellm.acompletion(**ASKED, **answer_of(end), user=customer)


def measure(customers: int, seed: int = 0, faults: Faults = FAULTS) -> Figures:
    """The figures of so many customers, twenty calls each."""
    from lab.budgets.naive_tracker import NaiveBudgets

    names = [f"customer-{n}" for n in range(customers)]
    world, naive, figures = World(seed, faults), NaiveBudgets(CAP), Figures()
    processes = Processes(world, figures)

    async def ours() -> None:
        await all_at_once(names, processes.call)
        await processes.settled()

    short = patch.object(gates_module, "REMEMBERED_MS", REMEMBERED_MS)
    with short, asyncio.Runner(loop_factory=Turned) as runner:
        with called_back(*processes.hooks.values()):
            runner.run(ours())
        judge(world, figures)
        with called_back(naive):
            runner.run(all_at_once(names, naively))
    figures.naive.update(naive.spent)
    return figures
