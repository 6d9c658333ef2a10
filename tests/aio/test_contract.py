"""The one contract (tests/contract), asked of a table that is awaited, on real engines."""

# ruff: noqa: F403

from collections.abc import Callable

import pytest

from lab.engines.ministack import Engine
from ledger.requests import Table
from tests.contract import test_packs, test_table_contract
from tests.contract.conftest import World
from tests.contract.test_packs import *
from tests.contract.test_table_contract import *


@pytest.fixture(params=["engine", "dynamodb_local"])
def world(request: pytest.FixtureRequest, new_world: Callable[[Engine], World]) -> World:
    return new_world(request.getfixturevalue(request.param))


@pytest.fixture
def table(world: World) -> Table:
    return world.home


def test_no_test_of_the_contract_hides_another() -> None:
    named = [name for module in (test_packs, test_table_contract) for name in vars(module) if name.startswith("test_")]
    assert len(named) == len({*named} & {*globals()}) > 20
