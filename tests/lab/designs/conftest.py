"""Where the designs are tried: a simulated table, tables of the embedded engine, and one of DynamoDB Local."""

from collections.abc import Iterator

import pytest

from lab.engines.ministack import Engine
from tests.lab.designs.support import OnEngine, OnWorld, Place


@pytest.fixture(scope="module", params=["engine", "dynamodb_local"])
def place(request: pytest.FixtureRequest, table_names: Iterator[str]) -> OnEngine:
    """One table for a whole module, on each engine."""
    return OnEngine.of(request.getfixturevalue(request.param), next(table_names))


@pytest.fixture
def on_engine(engine: Engine, table_names: Iterator[str]) -> OnEngine:
    """A new table of the embedded engine."""
    return OnEngine.of(engine, next(table_names))


@pytest.fixture
def on_world() -> OnWorld:
    """A new simulated table in two Regions."""
    return OnWorld()


@pytest.fixture(params=["on_world", "on_engine"])
def anywhere(request: pytest.FixtureRequest) -> Place:
    """A new table, simulated or of the embedded engine."""
    made: Place = request.getfixturevalue(request.param)
    return made
