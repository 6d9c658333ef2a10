"""Histories of calls that cost more than their estimates: such a cost fills its budgets, whatever
fails meanwhile.

Rule 1: a process dies in the middle of a settlement, or the table does not
decide; room comes back; then the same is settled again, in this process or another.
Rule 2: judged is what was spent, not what was believed: no budget is passed, and the two counters
together are what the calls cost. When the time of all holds is over nothing is held: what is left
can be taken, all of it. One call more that costs far more than its estimate fills the budget, and
the next is refused.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from random import Random
from typing import Any

from lab.histories.stage.stage import Played, one_of
from ledger import Ledger, Limit, Settings
from ledger.budgets import Budgets, Call, OverBudget
from ledger.core.checks import to_datetime
from ledger.core.errors import Again, LedgerError
from reader import Reader
from simulator import Faults, Simulation
from simulator.choices import Choices

REGIONS = ("eu-west-1", "us-east-1")
START = to_datetime(1_000_000)
TIMEOUT = timedelta(minutes=1)
CAP = 100
NAMES = ("llm:a", "llm:b")
WRONG = {
    "passed": "budgets that were passed",
    "uncounted": "budgets that miss what was answered",
    "doubled": "budgets that count what was not answered",
    "stuck": "budgets that hold what no call is to give back",
    "held": "budgets with something held at the end",
    "unfilled": "budgets with room after a cost that fills them",
}


class TwoRegions:
    """Budgets of `cap` in two Regions.

    Each `budgets` is a process of its own: nothing is shared but the table.
    """

    def __init__(self, cap: int, *, seed: int = 0, faults: Faults | None = None) -> None:
        self.cap = cap
        self.simulation = Simulation(REGIONS, seed=seed, faults=faults or Faults(), start=START)
        self._entropy = Random(seed).randbytes  # so that a seed is a history
        self.clock = self.simulation.clock
        self._limits = {"llm:": Limit(ceiling=cap, region=REGIONS[0])}

    def settings(self, region: str = REGIONS[0]) -> Settings:
        return Settings(table="counters", region=region, regions=REGIONS, limits=self._limits)

    def ledger(self, region: str = REGIONS[0]) -> Ledger:
        return Ledger(
            self.settings(region),
            table=self.simulation.table(region),
            clock=self.clock,
            entropy=self._entropy,
        )

    def budgets(
        self, region: str = REGIONS[0], ledger: Any = None, timeout: timedelta = TIMEOUT
    ) -> Budgets:
        return Budgets(ledger or self.ledger(region), timeout=timeout, clock=self.clock)

    def reserve(self, counter: str, estimate: int) -> Call:
        """A call of its own, under a name that the seed gives."""
        budgets = self.budgets()
        name = self._entropy(8).hex()
        return budgets.reserve([counter], estimate, call=name, at=budgets.now())

    def wait(self, span: timedelta) -> None:
        self.simulation.wait(int(span / timedelta(milliseconds=1)))

    def spent(self, counter: str) -> int:
        return self._reader().read(counter).value

    def held(self, counter: str) -> int:
        """By the gates and the notes: also what is over, until somebody ended it."""
        return sum(hold.amount for hold in self._reader().holds(counter))

    def _reader(self) -> Reader:
        return Reader(self.settings(), table=self.simulation.table(REGIONS[0]), clock=self.clock)

    def stands(self, counter: str) -> tuple[int, int]:
        return self.spent(counter), self.held(counter)

    def calm(self) -> TwoRegions:
        """The same table at rest, and without faults from here on."""
        self.simulation.come_to_rest()
        calm = TwoRegions(self.cap)
        calm.simulation.world = self.simulation.world
        calm._entropy = self._entropy
        return calm


def wrong_of(world: TwoRegions, counter: str, least: int, most: int) -> list[str]:
    """What is wrong of a budget when all of its calls have ended, by the names in WRONG: they
    cost so much together.
    """
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
    """All of it, and again after the time of the process that took it and died; then nothing is
    held.
    """
    call = world.reserve(counter, 0)
    for _ in range(2 if rest > 0 else 0):
        world.wait(2 * TIMEOUT)
        try:
            call = world.reserve(counter, rest)
            call.open()
        except LedgerError:
            return False
    call.settle(0)
    call.close()
    world.simulation.come_to_rest()
    return world.held(counter) == 0


def _can_be_filled(world: TwoRegions, counter: str) -> bool:
    try:
        for _ in range(2):
            with world.reserve(counter, 1) as call:
                call.settle(2 * world.cap)
    except LedgerError as error:
        return isinstance(error, OverBudget)
    return False


class Died(BaseException):
    """A process ends here."""


@dataclass
class FailingLedger:
    """A ledger of which the calls by a name, or those of one counter, fail `times` after so
    many, made or not.
    """

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


class BudgetHistory:
    """Calls under names that two processes share, so that either may settle. Each has a timeout of
    its own, as while a deployment replaces one by the other."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        often = one_of(choices, (0, 40))
        faults = Faults(throttled=often, dropped=often, lost=2 * often, late=often, lag_steps=20)
        self.world = TwoRegions(CAP, seed=choices.pick(10**6), faults=faults)
        self.open: list[tuple[Call, Call]] = []
        self.cost: Counter[str] = Counter()
        self.settled = self.kept = 0
        """kept: what refused calls could not release; it ends with their time."""

    def play(self) -> list[str]:
        for _ in range(12):
            self._begin()
            while self.open and self.choices.pick(2):
                self._end(*self.open.pop(self.choices.pick(len(self.open))))
        while self.open:
            self._end(*self.open.pop())
        self.world = self.world.calm()
        wrong = [f"{name}: stuck" for name in NAMES if self.world.held(name) > self.kept]
        return wrong + [
            f"{name}: {why}"
            for name in NAMES
            for why in wrong_of(self.world, name, *[self.cost[name]] * 2)
        ]

    def _begin(self) -> None:
        counters = one_of(self.choices, (NAMES[:1], NAMES[1:], NAMES, NAMES[::-1]))
        estimate, region = one_of(self.choices, (0, 1, 5, 20)), one_of(self.choices, REGIONS)
        name, at = f"{self.choices.pick(10**9):x}", self.world.budgets().now()
        timeouts = one_of(self.choices, ((TIMEOUT, TIMEOUT / 2), (TIMEOUT / 2, TIMEOUT)))
        first, second = (
            self.world.budgets(region, timeout=timeout).reserve(
                counters, estimate, call=name, at=at
            )
            for timeout in timeouts
        )
        for call in (first, second):
            while call.estimate and not call.holds:
                try:
                    call.open()
                except OverBudget as refused:
                    self.kept += call.estimate * len(getattr(refused, "__notes__", ()))
                    return
                except Again:
                    continue
        self.open.append((first, second))

    def _end(self, first: Call, second: Call) -> None:
        above = first.estimate + 1 + self.choices.pick(60)
        cost = one_of(self.choices, (0, first.estimate, above))
        self.cost.update(dict.fromkeys(first.counters, cost))
        for call in (first, second):
            call.settle(cost)
        self._dies(first)
        if self.open and self.choices.pick(2):  # room comes back
            self._end(*self.open.pop())
        last = one_of(self.choices, (first, second))
        self._dies(last)
        while not last.ended:
            with suppress(Again):
                last.close()
        self.settled += 1

    def _dies(self, call: Call) -> None:
        """At one of its writes, before or after it was made."""
        budgets, name = call._budgets, one_of(self.choices, ("capture", "add", "add"))
        whole = budgets.ledger
        after, applied = self.choices.pick(7), self.choices.pick(2) == 1
        budgets.ledger = FailingLedger(whole, name, Died(), after=after, applied=applied)
        try:
            with suppress(Died, Again):
                call.close()
        finally:
            budgets.ledger = whole


def play(choices: Choices) -> Played:
    """The calls are made one after the other by a real Ledger, so no log has its steps."""
    history = BudgetHistory(choices)
    try:
        wrong = history.play()
    except LedgerError as error:  # which no history can cause
        wrong = [f"{type(error).__name__}: {error}"]
    steps = history.world.simulation.world.step
    return Played(wrong, steps, Counter(settled=history.settled))
