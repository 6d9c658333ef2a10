"""The table of all budgets, in two Regions, under faults or calm."""

from __future__ import annotations

from datetime import timedelta

from ledger import Ledger, Limit, Settings
from ledger.checks import to_datetime
from reader import Reader
from simulator import Faults, Simulation

REGIONS = ("eu-west-1", "us-east-1")
FAULTS = Faults(throttled=20, dropped=20, lost=40, late=20, cut=1, lag_steps=20)
START = to_datetime(1_000_000)
TIMEOUT = timedelta(minutes=5)
CAP = 2_000
"""Micro-dollars a customer."""

ANSWER = 225
"""What LiteLLM's mock answer of gpt-4o costs: 10 tokens in, 20 out."""

DEAR = 600
"""What one answer costs that is longer than was asked for: more than its estimate."""

LONGEST = 21
"""Tokens of an answer: LiteLLM counts 8 in, so that an estimate is 230."""

ESTIMATE = 20 + 10 * LONGEST


class World:
    def __init__(self, seed: int = 0, faults: Faults = FAULTS) -> None:
        self.simulation = Simulation(REGIONS, seed=seed, faults=faults, start=START)

    def settings(self, region: str) -> Settings:
        limits = {"llm:": Limit(ceiling=CAP, region=REGIONS[0])}
        return Settings(table="counters", region=region, regions=REGIONS, limits=limits)

    def ledger(self, region: str) -> Ledger:
        return Ledger(self.settings(region), table=self.simulation.table(region), clock=self.simulation.clock)

    def reader(self, region: str) -> Reader:
        return Reader(self.settings(region), table=self.simulation.table(region), clock=self.simulation.clock)

    def calm(self) -> World:
        """The same table at rest, and without faults from here on."""
        self.simulation.come_to_rest()
        calm = World(faults=Faults())
        calm.simulation.world = self.simulation.world
        return calm
