"""A client, or a table, of another Region than the one that it stands for: two Regions would each
decide with the rights of one, and oversell.
"""

from collections.abc import Callable
from typing import Any

import pytest

from compactor import Compactor
from ledger import Ledger, Limit, Settings
from ledger.aio import AsyncLedger
from ledger.core.errors import InvalidSettings
from ledger.tables.fast import FastClient
from reader import Reader
from simulator import Simulation
from tests.ledger.scripted import SESSION

HERE, THERE = REGIONS = ("eu-west-1", "us-east-1")
LIMITS = {"seats:": Limit(ceiling=10, region=HERE)}
SETTINGS = Settings(table="counters", region=HERE, regions=REGIONS, limits=LIMITS)


def boto(region: str, url: str | None = None) -> Any:
    return SESSION.create_client("dynamodb", region, endpoint_url=url)


def fast(region: str, url: str | None = None) -> Any:
    return FastClient(region, url, session=SESSION)


MAKES: list[Callable[..., Any]] = [boto, fast]


@pytest.mark.parametrize("make", MAKES)
def test_a_client_of_another_region_is_refused(make: Callable[..., Any]) -> None:
    here, there = make(HERE), make(THERE)
    for wrong in (
        lambda: Ledger(SETTINGS, client=there),
        lambda: Ledger(SETTINGS, clients={HERE: here, THERE: here}),
        lambda: Ledger(SETTINGS, clients={HERE: there, THERE: here}),
        lambda: Reader(SETTINGS, client=there),
        lambda: Compactor(SETTINGS, clients={HERE: here, THERE: here}),
    ):
        with pytest.raises(InvalidSettings, match=r"is one of .*Nothing was written\. Make it"):
            wrong()
    Ledger(SETTINGS, clients={HERE: here, THERE: there})
    Reader(SETTINGS, client=here)
    Compactor(SETTINGS, clients={THERE: there})


@pytest.mark.parametrize("make", MAKES)
def test_one_client_of_an_engine_may_serve_all_regions(make: Callable[..., Any]) -> None:
    engine = make(HERE, "http://127.0.0.1:8000")
    Ledger(SETTINGS, clients=dict.fromkeys(REGIONS, engine))
    Reader(SETTINGS, client=make(THERE, "http://127.0.0.1:8000"))


def test_a_table_of_another_region_is_refused() -> None:
    world = Simulation(REGIONS)
    here, there = world.table(HERE), world.table(THERE)
    for wrong in (
        lambda: Ledger(SETTINGS, table=there),
        lambda: Ledger(SETTINGS, tables={HERE: there, THERE: here}),
        lambda: AsyncLedger(SETTINGS, tables={HERE: here, THERE: here}),
        lambda: Reader(SETTINGS, table=there),
        lambda: Compactor(SETTINGS, tables={HERE: there, THERE: here}),
    ):
        with pytest.raises(InvalidSettings, match=r"The table for .*Nothing was written"):
            wrong()
    Ledger(SETTINGS, tables={HERE: here, THERE: there})
