"""The one contract (tests/contract), asked of a table that is awaited, on real engines."""

# ruff: noqa: F403

from collections.abc import Callable

import pytest

from lab.engines.ministack import Engine
from ledger.core.requests import Table
from tests.contract import test_gates, test_table_contract, test_writes
from tests.contract.conftest import Replicas
from tests.contract.test_gates import *
from tests.contract.test_table_contract import *
from tests.contract.test_writes import *

CONTRACT = (test_gates, test_table_contract, test_writes)
NewReplicas = Callable[[Engine], Replicas]


@pytest.fixture(params=["engine", "dynamodb_local"])
def replicas(request: pytest.FixtureRequest, new_replicas: NewReplicas) -> Replicas:
    return new_replicas(request.getfixturevalue(request.param))


@pytest.fixture
def table(replicas: Replicas) -> Table:
    return replicas.home


@pytest.fixture(scope="module", params=["engine", "dynamodb_local"])
def kept(request: pytest.FixtureRequest, new_replicas: NewReplicas) -> Table:
    return new_replicas(request.getfixturevalue(request.param)).home


def test_no_test_of_the_contract_hides_another() -> None:
    named = [name for module in CONTRACT for name in vars(module) if name.startswith("test_")]
    assert len(named) == len({*named} & {*globals()}) > 15
