"""Histories of calls that cost more than their estimates: such a cost fills its budgets, whatever fails meanwhile.

Rule 1: a history is a seed. A process dies in the middle of a settlement, or the table does not decide; room comes
back; then the same is settled again, in this process or another.
Rule 2: judged is what was spent, not what was believed: no budget is passed, the two counters together are what the
calls cost, and in the end a cost that is too high leaves no room.
Rule 3: a planted mistake is a patch of one function, and some seed finds it.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import Any

from ledger import Ledger, Limit, Settings
from ledger.budgets import Budgets, Call, OverBudget, reserving
from ledger.checks import to_datetime
from ledger.errors import Again, LedgerError
from reader import Reader
from simulator import Faults, Simulation

REGIONS = ("eu-west-1", "us-east-1")
START = to_datetime(1_000_000)
TIMEOUT = timedelta(minutes=1)
CAP = 100
NAMES = ("llm:a", "llm:b")


class TwoRegions:
    """Budgets of `cap` in two Regions. Each `budgets` is a process of its own: nothing is shared but the table."""

    def __init__(self, cap: int, *, seed: int = 0, faults: Faults | None = None) -> None:
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

    def reader(self) -> Reader:
        return Reader(self.settings(), table=self.simulation.table(REGIONS[0]), clock=self.clock)

    def spent(self, counter: str) -> int:
        return self.reader().read(counter).value

    def held(self, counter: str) -> int:
        return self.reader().standing(counter).held.up or 0

    def stands(self, counter: str) -> tuple[int, int]:
        """What is spent of a budget, and what is held."""
        return self.spent(counter), self.held(counter)


class Died(BaseException):
    """A process ends here."""


class FailingLedger:
    """A ledger of which the calls by a name, or those of one counter, fail `times` after so many, made or not."""

    def __init__(
        self,
        ledger: Any,
        name: str,
        error: BaseException,
        times: int = 1,
        *,
        after: int = 0,
        applied: bool = False,
        counter: str | None = None,
    ) -> None:
        self._ledger, self._name, self._error, self._counter = ledger, name, error, counter
        self._fails, self._applied, self._calls = range(after, after + times), applied, 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._ledger, name)
        if name != self._name:
            return method

        def call(*args: Any, **given: Any) -> Any:
            if self._counter not in (None, args[0]):
                return method(*args, **given)
            self._calls += 1
            if self._calls - 1 not in self._fails:
                return method(*args, **given)
            if self._applied:
                method(*args, **given)
            raise self._error

        return call


class BudgetHistory:
    """Calls under names that two processes share, so that either may settle."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        often = self.draw.choice((0, 40))
        faults = Faults(throttled=often, dropped=often, lost=2 * often, late=often, lag_steps=20)
        self.world = TwoRegions(CAP, seed=seed, faults=faults)
        self.open: list[tuple[Call, Call]] = []
        self.cost: Counter[str] = Counter()

    def play(self) -> list[str]:
        """What is wrong in the end."""
        for _ in range(12):
            self._begin()
            while self.open and self.draw.random() < 0.5:
                self._end(*self.open.pop(self.draw.randrange(len(self.open))))
        while self.open:
            self._end(*self.open.pop())
        self.world.simulation._faults = Faults()
        self.world.simulation.come_to_rest()
        return [wrong for name in NAMES if (wrong := self._judge(name))]

    def _begin(self) -> None:
        counters = self.draw.sample(NAMES, self.draw.randint(1, 2))
        estimate = self.draw.choice((0, 1, 5, 20))
        at, name, region = self.world.budgets().now(), f"{self.draw.getrandbits(64):x}", self.draw.choice(REGIONS)
        first, second = (self.world.budgets(region).reserve(counters, estimate, call=name, at=at) for _ in range(2))
        for call in (first, second):
            while call.estimate and not call.holds:
                try:
                    call.open()
                except OverBudget:
                    return
                except Again:
                    continue
        self.open.append((first, second))

    def _end(self, first: Call, second: Call) -> None:
        cost = self.draw.choice((0, first.estimate, first.estimate + self.draw.randint(1, 60)))
        self.cost.update(dict.fromkeys(first.counters, cost))
        for call in (first, second):
            call.settle(cost)
        self._dies(first)
        if self.open and self.draw.random() < 0.5:  # room comes back
            self._end(*self.open.pop())
        last = self.draw.choice((first, second))
        self._dies(last)
        while not last.ended:
            with suppress(Again):
                last.close()

    def _dies(self, call: Call) -> None:
        """At one of its writes, before or after it was made."""
        budgets, name = call._budgets, self.draw.choice(("capture", "add", "add"))
        whole = budgets.ledger
        after, applied = self.draw.randint(0, 6), self.draw.random() < 0.5
        budgets.ledger = FailingLedger(whole, name, Died(), after=after, applied=applied)
        try:
            with suppress(Died, Again):
                call.close()
        finally:
            budgets.ledger = whole

    def _judge(self, name: str) -> str:
        spent, beside = self.world.spent(name), self.world.spent(f"over:{name}")
        if spent > CAP or spent + beside != self.cost[name]:
            return f"{name}: {spent} and {beside} beside it, of {self.cost[name]}"
        with suppress(OverBudget), self.world.budgets().reserve([name], 1) as call:
            call.settle(2 * CAP)
        with suppress(OverBudget):
            self.world.budgets().reserve([name], 1).open()
            return f"{name}: there is room where too much was spent"
        return ""


def goes_wrong(seed: int) -> list[str]:
    """What is wrong of this history. A mistake may also show as an error that no history can cause."""
    try:
        return BudgetHistory(seed).play()
    except LedgerError as error:
        return [f"{type(error).__name__}: {error}"]


Patch = Callable[[object, str, Any], object]
"""Sets an attribute, such as pytest's `monkeypatch.setattr`."""


def names_parts_anew(patch: Patch) -> None:
    patch(reserving.CallName, "part", lambda name, number: f"{name.id}/{uuid.uuid4().hex}")


def counts_the_rest_beside_whole(patch: Patch) -> None:
    filled: Any = reserving._filled

    def whole(counter: str, rest: int, name: Any, tries: int) -> Any:
        left = yield from filled(counter, rest, name, tries)
        return rest if left else 0

    patch(reserving, "_filled", whole)


def counts_beside_under_a_new_name(patch: Patch) -> None:
    add: Any = reserving._add

    def anew(counter: str, change: int, key: str, at: Any) -> Any:
        return add(counter, change, uuid.uuid4().hex if counter.startswith("over:") else key, at)

    patch(reserving, "_add", anew)


def asks_for_no_parts(patch: Patch) -> None:
    def filled(counter: str, rest: int, name: Any, tries: int) -> Any:
        fits = not rest or (yield from reserving._added(counter, rest, name.rest, name.at, tries))
        return 0 if fits else rest

    patch(reserving, "_filled", filled)


def names_parts_by_what_is_left(patch: Patch) -> None:
    """As much of the rest as there is room for now, under one name; what is left changes, and the name does not."""

    def filled(counter: str, rest: int, name: Any, tries: int) -> Any:
        for part in (rest, *reserving.parts(rest)):
            if part and (yield from reserving._added(counter, part, name.part(part), name.at, tries)):
                return rest - part
        return rest

    patch(reserving, "_filled", filled)


MISTAKES = (
    names_parts_anew,
    counts_the_rest_beside_whole,
    counts_beside_under_a_new_name,
    asks_for_no_parts,
    names_parts_by_what_is_left,
)
