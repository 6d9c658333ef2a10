"""Fixtures for the tests of your own code, which the page "Tests of your own" describes. pytest
loads them by itself where the wheel is installed.

Rule 1: pytest loads this in every run, so it imports no more than simulator/fixtures.py does.
"""

from simulator.fixtures import (
    counter_ledger,
    counter_reader,
    counter_table,
    moto_counters,
    pytest_configure,
    simulation,
)

__all__ = [
    "counter_ledger",
    "counter_reader",
    "counter_table",
    "moto_counters",
    "pytest_configure",
    "simulation",
]
