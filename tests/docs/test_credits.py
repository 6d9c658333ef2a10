"""The recipe of credits: spendings whose processes die, and that come again from any Region."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ledger import Ledger, Limit, Settings
from ledger.core.errors import LedgerError, TokenConflict
from reader import Reader
from simulator import Faults, Simulation
from tests.docs.conftest import Names
from tests.docs.pages import Dies, instead, mortal

Page = Callable[[str], Names]
REGIONS = ("eu-west-1", "us-east-1")
LIMITS = {"credits:": Limit(floor=0), "spent:": Limit(floor=0)}
START = datetime(2027, 1, 15, tzinfo=UTC)
GRANTS = tuple(f"credits:ann:2027-0{month}-01" for month in (1, 2, 3, 4))  # the first is over


class World:
    """The page's `spend`, in a simulation of two Regions."""

    def __init__(self, page: Names, seed: int, faults: Faults) -> None:
        self.page = page
        self.simulation = Simulation(REGIONS, seed=seed, faults=faults, start=START)
        tables = {region: self.simulation.table(region) for region in REGIONS}
        clock: Any = {"clock": self.simulation.clock}
        settings = {
            region: Settings(table="counters", region=region, regions=REGIONS, limits=LIMITS)
            for region in REGIONS
        }
        self.ledgers = {
            region: Ledger(settings[region], tables=tables, **clock) for region in REGIONS
        }
        self.reader = Reader(settings[REGIONS[0]], table=tables[REGIONS[0]], **clock)
        for grant in GRANTS:
            self.granted(grant)

    def granted(self, grant: str) -> None:
        """Ten credits, from whatever Region answers."""
        for _ in range(50):
            try:
                self.ledgers[REGIONS[0]].add(grant, 10, idempotency_key="paid", at=START)
                return
            except LedgerError:
                self.simulation.wait(100)
        raise AssertionError(grant)

    def spend(self, region: str, wanted: Any, calls: int = 1_000) -> dict[str, int] | None:
        """In a process of a Region that dies before one of its calls. Raises what it raises."""
        with instead(self.page, ledger=mortal(self.ledgers[region], calls)):
            answer: dict[str, int] | None = self.page["spend"](wanted)
        return answer

    def spending(self, number: int, chance: random.Random) -> Any:
        grants = tuple(chance.sample(GRANTS, chance.randrange(2, 5)))
        at = self.simulation.now() - timedelta(seconds=chance.randrange(60))
        named = (f"k{number}", at, "ann", chance.choice((1, 3, 7, 12)), grants)
        return self.page["Spending"](*named, region=chance.choice(REGIONS))


@pytest.mark.parametrize("seed", range(8))
def test_each_spending_moves_its_credits_once(page: Page, seed: int) -> None:
    chance, faults = random.Random(seed), Faults(throttled=20, lost=60, dropped=20, lag_steps=30)
    world = World(page("credits"), seed, faults)
    wanted = [world.spending(number, chance) for number in range(8)]
    todo, answers = list(range(len(wanted))), dict[int, dict[str, int] | None]()
    for _ in range(400):
        if not todo:
            break
        number = chance.choice(todo)
        calls = chance.randrange(1, 8) if chance.random() < 0.3 else 1_000
        try:
            answers[number] = world.spend(chance.choice(REGIONS), wanted[number], calls)
            todo.remove(number)
        except TokenConflict:
            raise
        except (Dies, LedgerError):
            world.simulation.wait(200)
    assert not todo
    world.simulation.come_to_rest()
    for number, spending in enumerate(wanted):
        again: dict[str, int] | None = None
        for _ in range(50):
            try:
                again = world.spend(chance.choice(REGIONS), spending)
                break
            except TokenConflict:
                raise
            except LedgerError:
                world.simulation.wait(1_500)
        assert again == answers[number]
        assert again is None or sum(again.values()) == spending.amount
    world.simulation.come_to_rest()
    for grant in GRANTS:
        spent = sum((answer or {}).get(grant, 0) for answer in answers.values())
        assert 0 <= world.reader.read(grant).value == 10 - spent
    assert world.reader.read(GRANTS[0]).value == 10  # it had lapsed before
    assert any(answers.values())


def test_other_content_under_a_key_is_refused_and_moves_nothing(page: Page) -> None:
    world = World(page("credits"), 0, Faults())
    wanted = world.page["Spending"]("k", START, "ann", 12, GRANTS, region=REGIONS[0])
    for calls in range(1, 5):  # nothing is whole yet, or all
        try:
            first = world.spend(REGIONS[0], wanted, calls)
        except Dies:
            continue
    assert first == {GRANTS[1]: 10, GRANTS[2]: 2}
    for other in (replace(wanted, amount=11), replace(wanted, grants=GRANTS[2:])):
        with pytest.raises(TokenConflict):
            world.spend(REGIONS[0], other)
    assert world.spend(REGIONS[1], replace(wanted, grants=GRANTS[::-1])) == first
    world.simulation.come_to_rest()
    assert [world.reader.read(grant).value for grant in GRANTS] == [10, 0, 8, 10]
