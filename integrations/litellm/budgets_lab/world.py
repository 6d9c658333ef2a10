"""The budgets of gateways in two Regions, on one simulated table, under faults or calm; a loop whose time is turned."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from ledger import Ledger, Limit, Settings
from ledger.checks import to_datetime
from reader import Reader
from simulator import Faults, Simulation

REGIONS = ("eu-west-1", "us-east-1")
START = to_datetime(1_000_000)
TIMEOUT = timedelta(minutes=5)


class TwoGateways:
    """Every budget has a ceiling of `cap`."""

    def __init__(self, cap: int, seed: int = 0, faults: Faults | None = None) -> None:
        self.cap = cap
        self.simulation = Simulation(REGIONS, seed=seed, faults=faults or Faults(), start=START)
        self.clock = self.simulation.clock

    def settings(self, region: str = REGIONS[0]) -> Settings:
        limits = {"llm:": Limit(ceiling=self.cap, region=REGIONS[0])}
        return Settings(table="counters", region=region, regions=REGIONS, limits=limits)

    def ledger(self, region: str = REGIONS[0]) -> Ledger:
        return Ledger(self.settings(region), table=self.simulation.table(region), clock=self.clock)

    def spent(self, counter: str) -> int:
        return self._reader().read(counter).value

    def held(self, counter: str) -> int:
        return self._reader().standing(counter).held.up or 0

    def stands(self, counter: str) -> tuple[int, int]:
        """What is spent of a budget, and what is held."""
        return self.spent(counter), self.held(counter)

    def _reader(self) -> Reader:
        return Reader(self.settings(), table=self.simulation.table(REGIONS[0]), clock=self.clock)

    def calm(self) -> TwoGateways:
        """The same table at rest, and without faults from here on."""
        self.simulation.come_to_rest()
        calm = TwoGateways(self.cap)
        calm.simulation.world = self.simulation.world
        return calm


class TurnedLoop(asyncio.SelectorEventLoop):
    """A loop whose time can be turned on, for what waits to be tried again."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s
