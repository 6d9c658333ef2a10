"""Budgets in two Regions, their processes that fail or die on the way, and what is wrong of a budget at the end.

Judged is what was spent, not what was believed: no budget is passed, and the two counters together are what the calls
cost. When the time of all holds is over nothing is held: what is left can be taken, all of it. One call more that costs
far more than its estimate fills the budget, and the next is refused.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from typing import Any

from ledger import Ledger, Limit, Settings
from ledger.budgets import Budgets, OverBudget
from ledger.checks import to_datetime
from ledger.errors import LedgerError
from reader import Reader
from simulator import Faults, Simulation

REGIONS = ("eu-west-1", "us-east-1")
START = to_datetime(1_000_000)
TIMEOUT = timedelta(minutes=1)
WRONG = {
    "passed": "budgets that were passed",
    "uncounted": "budgets that miss what was answered",
    "doubled": "budgets that count what was not answered",
    "stuck": "budgets that hold what no call is to give back",
    "held": "budgets with something held at the end",
    "unfilled": "budgets with room after a cost that fills them",
}


class TwoRegions:
    """Budgets of `cap` in two Regions. Each `budgets` is a process of its own: nothing is shared but the table."""

    def __init__(self, cap: int, *, seed: int = 0, faults: Faults | None = None) -> None:
        self.cap = cap
        self.simulation = Simulation(REGIONS, seed=seed, faults=faults or Faults(), start=START)
        self.clock = self.simulation.clock
        self._limits = {"llm:": Limit(ceiling=cap, region=REGIONS[0])}

    def settings(self, region: str = REGIONS[0]) -> Settings:
        return Settings(table="counters", region=region, regions=REGIONS, limits=self._limits)

    def ledger(self, region: str = REGIONS[0]) -> Ledger:
        return Ledger(self.settings(region), table=self.simulation.table(region), clock=self.clock)

    def budgets(self, region: str = REGIONS[0], ledger: Any = None) -> Budgets:
        return Budgets(ledger or self.ledger(region), timeout=TIMEOUT, clock=self.clock)

    def wait(self, span: timedelta) -> None:
        self.simulation.wait(int(span / timedelta(milliseconds=1)))

    def spent(self, counter: str) -> int:
        return self._reader().read(counter).value

    def held(self, counter: str) -> int:
        return self._reader().standing(counter).held.up or 0

    def _reader(self) -> Reader:
        return Reader(self.settings(), table=self.simulation.table(REGIONS[0]), clock=self.clock)

    def stands(self, counter: str) -> tuple[int, int]:
        return self.spent(counter), self.held(counter)

    def calm(self) -> TwoRegions:
        """The same table at rest, and without faults from here on."""
        self.simulation.come_to_rest()
        calm = TwoRegions(self.cap)
        calm.simulation.world = self.simulation.world
        return calm


def wrong_of(world: TwoRegions, counter: str, least: int, most: int) -> list[str]:
    """What is wrong of a budget when all of its calls have ended, by the names in WRONG: they cost so much together."""
    spent, beside = world.spent(counter), world.spent(f"over:{counter}")
    wrong = {
        "passed": spent > world.cap or least - beside > world.cap,
        "uncounted": spent + beside < least,
        "doubled": spent + beside > most,
        "held": not _can_be_taken(world, counter, world.cap - spent),
        "unfilled": not _can_be_filled(world, counter),  # last, because it fills the budget
    }
    return [name for name, is_so in wrong.items() if is_so]


def _can_be_taken(world: TwoRegions, counter: str, rest: int) -> bool:
    """All of it, so that nothing else is held."""
    try:
        call = world.budgets().reserve([counter], rest).open()
    except LedgerError:
        return False
    call.settle(0)
    call.close()
    return True


def _can_be_filled(world: TwoRegions, counter: str) -> bool:
    try:
        for _ in range(2):
            with world.budgets().reserve([counter], 1) as call:
                call.settle(2 * world.cap)
    except LedgerError as error:
        return isinstance(error, OverBudget)
    return False


class Died(BaseException):
    """A process ends here."""


@dataclass
class FailingLedger:
    """A ledger of which the calls by a name, or those of one counter, fail `times` after so many, made or not."""

    ledger: Any
    name: str
    error: BaseException
    times: int = 1
    _: KW_ONLY
    after: int = 0
    applied: bool = False
    counter: str | None = None

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.ledger, name)
        if name != self.name:
            return method

        def call(*args: Any, **given: Any) -> Any:
            if self.counter not in (None, args[0]) or self.times == 0:
                return method(*args, **given)
            if self.after:
                self.after -= 1
                return method(*args, **given)
            self.times -= 1
            if self.applied:
                method(*args, **given)
            raise self.error

        return call
