"""`python -m budgets_lab` (part of `make litellm`): prints what the budgets let through, beside a
naive tracker.

Each customer's calls are made at once, from two processes, one a Region.

Rule 1: all calls of a customer bear one name, as of a gateway whose clients name their calls: no
budget may rest on it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from random import Random
from typing import Annotated, Any

import litellm
import typer
from exact_counter.errors import LedgerError, LimitReached
from exact_counter.testing import Faults, Simulation
from lab.histories.parts.budgets import REGIONS, TwoRegions
from litellm.integrations.custom_logger import CustomLogger

from budgets_lab.judge import CAP, DEAR, ESTIMATE, LINES, LONGEST, TIMEOUT, Figures, judge
from budgets_lab.provider import TurnedLoop, all_ended, installed
from ledger_litellm import LedgerBudgets

FAULTS = Faults(throttled=20, dropped=20, lost=40, late=20, lag_steps=20)
ASKED: dict[str, Any] = {
    "model": "gpt-4o",
    "messages": [{"role": "user", "content": "hello"}],
    "max_tokens": LONGEST,
}
ENDS = ["answered"] * 13 + ["dear"] + ["left"] * 2 + ["failed"] * 2 + ["died"] * 2
"""How the calls of a customer end: answered, answered for more than the estimate, left in the
middle of a stream, failed, or with their process.
"""

AT_ONCE = 4  # so many customers call at the same time
CUT_EVERY = 8  # one customer of so many calls while the Regions are cut off from each other
# what could not be settled is tried again for ten minutes; so far the time is turned on
TRIES_S = 900


class NaiveBudgets(CustomLogger):
    """A budget as it is usually kept: read what was spent, compare, call, add.

    Micro-dollars by `user=`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.spent: Counter[str] = Counter()

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> None:
        if self.spent[kwargs["user"]] >= CAP:
            raise litellm.BudgetExceededError(self.spent[kwargs["user"]] / 1e6, CAP / 1e6)

    async def async_post_call_success_deployment_hook(
        self, request_data: Mapping[str, Any], response: Any, call_type: Any
    ) -> None:
        self.spent[request_data["user"]] += round(litellm.completion_cost(response) * 1e6)


async def end_of(hooks: LedgerBudgets, customer: str, region: str, end: str) -> str:
    """Make a call that is to end so, and say how it did."""
    asked = ASKED | {
        "user": customer,
        "metadata": {"organization": region},
        "litellm_call_id": customer,
    }
    try:
        if end == "died":
            await hooks.budgets.reserve([f"llm:{customer}"], ESTIMATE).aopen()
        elif end == "left":
            stream = hooks.stream(await litellm.acompletion(**asked, **answer_of(end), stream=True))
            async with aclosing(stream) as chunks:
                await anext(chunks)
        else:
            await litellm.acompletion(**asked, **answer_of(end))
    except (litellm.BudgetExceededError, LimitReached):
        return "refused"
    except litellm.InternalServerError:
        return "failed"
    except (litellm.ServiceUnavailableError, LedgerError):
        return "undecided"
    return end


def answer_of(end: str) -> dict[str, Any]:
    """What the provider answers."""
    if end == "failed":
        return {"mock_response": RuntimeError("the provider is down")}
    if end == "dear":
        usage = {
            "prompt_tokens": 8,
            "completion_tokens": DEAR // 10 - 2,
            "total_tokens": DEAR // 10 + 6,
        }
        choices = [{"message": {"role": "assistant", "content": "longer than was asked for"}}]
        return {
            "mock_response": litellm.ModelResponse(model="gpt-4o", choices=choices, usage=usage)
        }
    return {"mock_response": "a mock of twenty tokens"}


async def all_settled(*budgets: LedgerBudgets) -> None:
    """Until no call is open, and what could not be settled was tried again until that is given
    up.
    """
    began = TurnedLoop.ahead_s
    while TurnedLoop.ahead_s < began + TRIES_S:
        TurnedLoop.ahead_s += 10
        await asyncio.sleep(0.001)
        await all_ended(*budgets)


async def all_at_once(
    customers: list[str],
    call: Callable[[str, str, str], Awaitable[None]],
    simulation: Simulation | None = None,
) -> None:
    """The calls of a customer at once, every other one in the other Region; some customers at a
    time.
    """
    turn = asyncio.Semaphore(AT_ONCE)

    async def of(number: int, customer: str) -> None:
        ends = Random(customer).sample(ENDS, len(ENDS))
        async with turn:
            if simulation and number % CUT_EVERY == CUT_EVERY - 1:
                simulation.cut_off(REGIONS[1])
            await asyncio.gather(
                *(call(customer, REGIONS[n % 2], end) for n, end in enumerate(ends))
            )
            if simulation:
                simulation.join(REGIONS[1])

    await asyncio.gather(*(of(number, customer) for number, customer in enumerate(customers)))


def measure(customers: int, seed: int = 0, faults: Faults = FAULTS) -> Figures:
    """The figures of so many customers, twenty calls each."""
    names = [f"customer-{n}" for n in range(customers)]
    world, naive, figures = TwoRegions(CAP, seed=seed, faults=faults), NaiveBudgets(), Figures()

    def counters_in(region: str) -> Any:
        return lambda caller: (
            [f"llm:{caller['user']}"] if caller.get("organization") == region else []
        )

    processes = {
        region: LedgerBudgets(
            world.ledger(region), counters_in(region), timeout=TIMEOUT, clock=world.clock
        )
        for region in REGIONS
    }

    async def ours() -> None:
        async def call(customer: str, region: str, end: str) -> None:
            figures.calls[customer][await end_of(processes[region], customer, region, end)] += 1

        await all_at_once(names, call, world.simulation)
        await all_settled(*processes.values())

    async def naively(customer: str, region: str, end: str) -> None:
        with suppress(litellm.BudgetExceededError, litellm.InternalServerError):
            await litellm.acompletion(**ASKED, **answer_of(end), user=customer)

    with asyncio.Runner(loop_factory=TurnedLoop) as runner:
        with installed(*processes.values()):
            runner.run(ours())
        judge(world, figures)
        with installed(naive):
            runner.run(all_at_once(names, naively))
    figures.naive.update(naive.spent)
    return figures


def main(
    customers: Annotated[int, typer.Option(min=1, help="Each has twenty calls at once.")] = 250,
    seed: int = 0,
) -> None:
    """Print what the budgets let through, beside a tracker that reads, compares, calls and adds; 1
    if ours is wrong, if it decided too little, or if that tracker is right.
    """
    logging.getLogger("exact-counter.litellm").setLevel(logging.CRITICAL)
    figures = measure(customers, seed)
    print(
        f"{customers} customers, {len(ENDS)} calls of each at once, 2 Regions, {CAP:,} "
        "micro-dollars each; faults"
    )
    print(
        "calls: " + ", ".join(f"{count:,} {name}" for name, count in figures.outcomes.most_common())
    )
    naive, all = figures.naive.values(), customers * CAP
    print(f"{'':46} {'ours':>12} {'naive':>12}")
    print(f"{'micro-dollars spent':46} {figures.spent:>12,} {sum(naive):>12,}")
    print(
        f"{'% of all budgets':46} {100 * figures.spent // all:>12,} {100 * sum(naive) // all:>12,}"
    )
    for name, line in LINES.items():
        theirs = f"{sum(spent > CAP for spent in naive):,}" if name == "passed" else "-"
        print(f"{line:46} {figures.wrong[name]:>12,} {theirs:>12}")
    if figures.is_undecided:
        print("Too few calls were answered, refused or decided at all: the rest proves nothing.")
    if figures.is_easy:
        print("The naive tracker, too, kept to some customer's budget: the run proves nothing.")
    sys.exit(not figures.is_right)


if __name__ == "__main__":
    typer.run(main)
