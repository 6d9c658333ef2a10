"""Where the designs are tried: a simulated table, and tables of the embedded engine."""

from collections.abc import Iterator

import pytest

from lab.engines.ministack import Engine
from tests.lab.designs.support import OnEngine, OnWorld, Place


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
