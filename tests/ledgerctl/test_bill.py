"""Dollars worked out by hand, and the prices of docs/costs.md."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerctl.bill import PRICES, Usage, million_changes, million_reads, storage_month

COSTS = (Path(__file__).parents[2] / "docs" / "costs.md").read_text()
UNITS = st.floats(0, 1000)


def price(row: str) -> float:
    found = re.search(rf"^\| {re.escape(row)} \| ([0-9.]+) a (?:million|GB)", COSTS, re.MULTILINE)
    assert found, row
    return float(found[1])


def test_the_prices_are_those_of_the_page_on_costs() -> None:
    assert price("DynamoDB write unit, and replicated write unit") == PRICES.write == PRICES.replicated_write
    assert price("DynamoDB read unit") == PRICES.read
    assert price("DynamoDB storage, with point-in-time recovery") == PRICES.storage
    text = " ".join(COSTS.split())
    assert f"list prices of {PRICES.region}" in text
    assert f"since {PRICES.since}" in text
    assert PRICES.page in COSTS


def test_dollars_are_those_worked_out_by_hand() -> None:
    add, refused_twice = Usage(write_units=1, read_units=1), Usage(write_units=3, read_units=1, replicated_units=1)
    assert [million_changes(add, regions) for regions in (1, 2, 3)] == [0.625, 1.25, 1.875]
    assert million_reads(add) == 0.125
    assert million_changes(refused_twice, 3) == 0.625 * (3 + 1 + 1), "a write that failed is not replicated"
    assert million_changes(Usage(1, 1, compaction_read_units=2), 2) == 0.625 * 2 + 0.125 * 2, "read in one Region"
    stored = Usage(1, 1, item_bytes=69, items=1)
    assert storage_month(stored, 10**9, 1) == pytest.approx(169 * 0.45)
    assert storage_month(stored, 10**9, 2) == pytest.approx(2 * 217 * 0.45)


@given(UNITS, UNITS, st.integers(1, 5))
def test_more_units_and_more_regions_never_cost_less(write_units: float, more: float, regions: int) -> None:
    cheap, dear = Usage(write_units, 0), Usage(write_units + more, more, compaction_read_units=more, item_bytes=more)
    assert million_changes(cheap, regions) <= million_changes(dear, regions) <= million_changes(dear, regions + 1)
    assert million_reads(cheap) <= million_reads(dear)
    assert storage_month(cheap, 1e9, regions) <= storage_month(dear, 1e9, regions)


def test_no_region_has_no_bill() -> None:
    with pytest.raises(ValueError, match="0 Regions"):
        million_changes(Usage(1, 1), 0)
    with pytest.raises(ValueError, match="0 Regions"):
        storage_month(Usage(1, 1), 1, 0)
