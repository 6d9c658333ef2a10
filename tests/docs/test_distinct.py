"""The recipe of distinct counts: the same visitors in two Regions, cut off and joined."""

import random
from collections.abc import Callable
from datetime import timedelta

from compactor import Compactor
from ledger import Keep, Ledger, Settings
from reader import Reader
from simulator import Faults, Simulation
from tests.docs.conftest import Names
from tests.docs.pages import instead

REGIONS = ("eu-west-1", "us-east-1")
PERIODS = {"visitors:": Keep(late=timedelta(days=15), keep=timedelta(days=400))}


def test_a_visitor_counts_once_a_day_in_whatever_region(page: Callable[[str], Names]) -> None:
    recipe, chance = page("distinct"), random.Random(7)
    simulation = Simulation(REGIONS, seed=7, faults=Faults(lag_steps=50))
    tables = {region: simulation.table(region) for region in REGIONS}
    settings = [
        Settings(table="counters", region=region, regions=REGIONS, periods=PERIODS)
        for region in REGIONS
    ]
    clock = simulation.clock
    ledgers = [Ledger(each, table=tables[each.region], clock=clock) for each in settings]
    at, came = simulation.now(), set[int]()
    for visit in range(300):
        if visit == 100:
            simulation.cut_off(recipe["HOME"])
        if visit == 200:
            simulation.join(recipe["HOME"])
        visitor = min(chance.randrange(80), chance.randrange(200))
        came.add(visitor)
        with instead(recipe, ledger=chance.choice(ledgers)):
            recipe["count"].cache_clear()  # each visit comes to another process
            recipe["saw"]("/", f"visitor-{visitor}", at)
    for _ in range(3):
        simulation.come_to_rest()
        simulation.wait(60_000)
        for each in settings:
            Compactor(each, tables=tables, clock=clock).run()
    name = recipe["DAY"].name("visitors:/", at)
    for each in settings:
        assert Reader(each, table=tables[each.region], clock=clock).value(name) == len(came)
