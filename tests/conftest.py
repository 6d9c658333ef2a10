"""What every folder of tests may use: a real engine as a process, and names of tables in it."""

from collections.abc import Iterator
from itertools import count

import pytest

from demo.engine import Engine, EngineMissing


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """An embedded DynamoDB; what needs it is skipped where it is not installed."""
    running = Engine()
    try:
        running.start()
    except EngineMissing as missing:
        pytest.skip(str(missing))
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def table_names() -> Iterator[str]:
    """Names of tables that no other test has."""
    return (f"counters-{n}" for n in count())
