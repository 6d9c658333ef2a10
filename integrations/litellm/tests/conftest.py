"""A table in two Regions for each test."""

import pytest
from lab.histories.parts.budgets import TwoRegions

import budgets_lab  # noqa: F401


@pytest.fixture
def world() -> TwoRegions:
    return TwoRegions(1_000)
