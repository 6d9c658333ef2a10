"""`python -m lab.budgets` (`make budgets`): many customers' calls at once in two Regions under faults, on real LiteLLM.

Rule 1: what is judged is what the provider answered, not what a tracker believes.
Rule 2: both trackers get the same calls; the naive one reads, compares, calls and adds, on a store that never fails.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Annotated, Any

import typer

from ledger import Ledger, Limit, Settings
from ledger.errors import LedgerError
from reader import Reader
from simulator import Faults, Simulation

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # prices from the package, not from the network

REGIONS = ("eu-west-1", "us-east-1")
FAULTS = Faults(throttled=20, dropped=20, lost=40, late=20, cut=1, lag_steps=20)
TIMEOUT = timedelta(minutes=5)
CAP = 2_000
"""Micro-dollars a customer."""

ANSWER = 225
"""What LiteLLM's mock answer of gpt-4o costs: 10 tokens in, 20 out."""

ASKED: dict[str, Any] = {
    "model": "gpt-4o",
    "messages": [{"role": "user", "content": "hello"}],
    "max_tokens": 20,
    "mock_response": "a mock of twenty tokens",
}
ENDS = ["answered"] * 14 + ["left"] * 2 + ["failed"] * 2 + ["died"] * 2
"""How the calls of a customer end: answered, left in the middle of a stream, failed, or with their process."""

AT_ONCE = 4
"""So many customers call at the same time."""


@dataclass
class Figures:
    """Of all customers. over: whose budget was passed. held: who could not take all that was left at the end."""

    outcomes: Counter[str] = field(default_factory=Counter)
    billed: Counter[str] = field(default_factory=Counter)
    naive: Counter[str] = field(default_factory=Counter)
    over: int = 0
    held: int = 0
    uncounted: int = 0
    spent: int = 0

    @property
    def is_right(self) -> bool:
        return not (self.over or self.held or self.uncounted)


class Turned(asyncio.SelectorEventLoop):
    """A loop whose time can be turned on, for what waits to be tried again."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s


class Lab:
    """Two processes, one a Region, that keep the budgets of all customers."""

    def __init__(self, seed: int, faults: Faults) -> None:
        from integrations.litellm import LedgerBudgets

        self.world = Simulation(REGIONS, seed=seed, faults=faults)
        self.hooks = {
            region: LedgerBudgets(self.ledger(region), counters_in(region), timeout=TIMEOUT, clock=self.world.clock)
            for region in REGIONS
        }

    def ledger(self, region: str) -> Ledger:
        limits = {"llm:": Limit(ceiling=CAP, region=REGIONS[0])}
        settings = Settings(table="counters", region=region, regions=REGIONS, limits=limits)
        return Ledger(settings, table=self.world.table(region), clock=self.world.clock)

    async def call(self, customer: str, region: str, end: str, figures: Figures) -> None:
        import litellm

        hooks = self.hooks[region]
        asked = ASKED | {"user": customer, "metadata": {"organization": region}}
        try:
            if end == "died":
                await hooks.budgets.reserve([f"llm:{customer}"], ANSWER).aopen()
            elif end == "left":
                async with aclosing(hooks.stream(await litellm.acompletion(**asked, stream=True))) as chunks:
                    await anext(chunks)
            else:
                failing = {"mock_response": RuntimeError("the provider is down")} if end == "failed" else {}
                await litellm.acompletion(**(asked | failing))
                figures.billed[customer] += ANSWER
            figures.outcomes[end] += 1
        except (litellm.BudgetExceededError, litellm.ServiceUnavailableError, litellm.InternalServerError) as error:
            figures.outcomes["failed" if end == "failed" else type(error).__name__] += 1
        except LedgerError as error:
            figures.outcomes[type(error).__name__] += 1

    def judge(self, customers: list[str], figures: Figures) -> None:
        """At rest, when the last call's time is over."""
        self.world.wait(int(TIMEOUT.total_seconds() * 1000))
        self.world.come_to_rest()
        calm = Simulation(REGIONS)
        calm.world = self.world.world
        limits = {"llm:": Limit(ceiling=CAP, region=REGIONS[0])}
        settings = Settings(table="counters", region=REGIONS[0], regions=REGIONS, limits=limits)
        reader = Reader(settings, table=calm.table(REGIONS[0]), clock=calm.clock)
        ledger = Ledger(settings, table=calm.table(REGIONS[0]), clock=calm.clock)
        for customer in customers:
            spent, beside = reader.read(f"llm:{customer}").value, reader.read(f"over:llm:{customer}").value
            figures.spent += spent
            figures.over += spent > CAP
            figures.uncounted += spent + beside < figures.billed[customer]
            try:
                if spent < CAP:
                    ledger.release(ledger.hold(f"llm:{customer}", CAP - spent, expires=TIMEOUT))
                calm.come_to_rest()
                figures.held += reader.standing(f"llm:{customer}").held.up != 0
            except LedgerError:
                figures.held += 1


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


async def settled(lab: Lab) -> None:
    """Until no call is open; what could not be settled is tried again after a while."""
    while any(len(hooks.open) for hooks in lab.hooks.values()):
        Turned.ahead_s += 10
        await asyncio.sleep(0.05)
    for _ in range(20):
        Turned.ahead_s += 10
        await asyncio.sleep(0.05)


def measure(customers: int, seed: int = 0, faults: Faults = FAULTS) -> Figures:
    """The figures of so many customers, twenty calls each."""
    import litellm

    from lab.naive_budget import NaiveBudgets

    names = [f"customer-{n}" for n in range(customers)]
    lab, naive, figures = Lab(seed, faults), NaiveBudgets(CAP), Figures()

    async def ours() -> None:
        await all_at_once(names, lambda customer, region, end: lab.call(customer, region, end, figures))
        await settled(lab)

    async def theirs(customer: str, region: str, end: str) -> None:
        failing = {"mock_response": RuntimeError("the provider is down")} if end == "failed" else {}
        with suppress(litellm.BudgetExceededError, litellm.InternalServerError):
            await litellm.acompletion(**(ASKED | {"user": customer} | failing))

    with asyncio.Runner(loop_factory=Turned) as runner:
        with called_back(*lab.hooks.values()):
            runner.run(ours())
        lab.judge(names, figures)
        with called_back(naive):
            runner.run(all_at_once(names, theirs))
    figures.naive.update(naive.spent)
    return figures


def main(
    customers: Annotated[int, typer.Option(min=1, help="Each has twenty calls at once.")] = 250,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Print what the budgets let through, beside a tracker that reads, compares, calls and adds; 1 if ours is wrong."""
    logging.getLogger("exact-counter.litellm").setLevel(logging.CRITICAL)
    figures = measure(customers, seed)
    of = f"{customers} customers, {len(ENDS)} calls of each at once, {len(REGIONS)} Regions, {CAP:,} micro-dollars each"
    print(f"{of}; faults")
    print("calls: " + ", ".join(f"{count:,} {name}" for name, count in figures.outcomes.most_common()))
    naive = figures.naive.values()
    rows: list[tuple[str, int, int | str]] = [
        ("budgets that were passed", figures.over, sum(spent > CAP for spent in naive)),
        ("micro-dollars spent", figures.spent, sum(naive)),
        ("% of all budgets", 100 * figures.spent // (customers * CAP), 100 * sum(naive) // (customers * CAP)),
        ("budgets with something held at the end", figures.held, "-"),
        ("budgets that miss what was billed", figures.uncounted, "-"),
    ]
    for name, ours, theirs in [("", "ours", "naive"), *rows]:
        print(f"{name:40} {_shown(ours):>12} {_shown(theirs):>12}")
    sys.exit(not figures.is_right)


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    typer.run(main)
