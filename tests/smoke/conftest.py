"""The table of a run of smoke, which its environment names (SMOKE); without one nothing is
collected here.
"""

import os
from collections.abc import Callable

import pytest

from lab.smoke.visit import Visit, visit_of

collect_ignore_glob = [] if "SMOKE" in os.environ else ["test_*.py"]


@pytest.fixture(scope="session")
def visit() -> Visit:
    return visit_of(os.environ["SMOKE"])


@pytest.fixture
def on_aws(visit: Visit) -> Visit:
    """What an engine cannot show."""
    if visit.engine:
        pytest.skip("an engine asks no IAM, measures little and has one clock")
    return visit


@pytest.fixture
def say(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """What was seen, for the report."""
    return lambda text: record_property("seen", text)


@pytest.fixture
def costs(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """What docs/costs.md says beside it."""
    return lambda text: record_property("costs", text)
