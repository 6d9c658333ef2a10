"""The contract of conditional writes (tests/contract), asked of a table that is awaited, on real engines."""

# ruff: noqa: F403

from collections.abc import Callable

import pytest

from lab.engines.ministack import Engine
from ledger.requests import Table
from tests.contract import test_gates, test_writes
from tests.contract.conftest import World
from tests.contract.test_gates import *
from tests.contract.test_writes import *


@pytest.fixture(scope="module", params=["engine", "dynamodb_local"])  # type: ignore[no-redef]
def table(request: pytest.FixtureRequest, new_world: Callable[[Engine], World]) -> Table:
    """One table for the whole module, because examples are many; each begins with its own items."""
    return new_world(request.getfixturevalue(request.param)).home


def test_no_test_of_the_contract_hides_another() -> None:
    named = [name for module in (test_gates, test_writes) for name in vars(module) if name.startswith("test_")]
    assert len(named) == len({*named} & {*globals()}) > 3
