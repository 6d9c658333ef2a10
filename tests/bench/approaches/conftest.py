"""A table on the engine for each test module, a new one for each test, and the same choice of simulator or engine."""

from collections.abc import Iterator

import pytest

from demo.engine import Engine
from tests.bench.approaches.support import OnEngine, OnWorld, Place


@pytest.fixture(scope="module")
def place(engine: Engine, table_names: Iterator[str]) -> OnEngine:
    """One table for a whole module."""
    return OnEngine.of(engine, next(table_names))


@pytest.fixture
def on_engine(engine: Engine, table_names: Iterator[str]) -> OnEngine:
    return OnEngine.of(engine, next(table_names))


@pytest.fixture
def on_world() -> OnWorld:
    return OnWorld()


@pytest.fixture(params=["on_world", "on_engine"])
def anywhere(request: pytest.FixtureRequest) -> Place:
    """A new table, simulated or of an engine."""
    made: Place = request.getfixturevalue(request.param)
    return made
