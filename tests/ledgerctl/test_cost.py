"""`cost` prints the bills of docs/costs.md and of the README, at the prices of docs/bills.txt."""

import re
from pathlib import Path

import pytest

from ledgerctl.cost import OVERHEAD_BYTES, PAGE, PRICES, TABLE_UNITS_MAX, amount
from tests.ledgerctl.support import Said, Tables, refused

ROOT = Path(__file__).parents[2]
COSTS, BILLS = ((ROOT / "docs" / name).read_text() for name in ("costs.md", "bills.txt"))
WORKLOADS = dict(
    zip("ABC", re.findall(r"^\$ ledgerctl (cost .*)$", BILLS, re.MULTILINE), strict=True)
)


BY_HAND = {"A": 35.37, "B": 160.71}
"""Added up once from AWS's list prices alone: 6.8 million invocations of ring and a GB-month of
each log among it.
"""


def ctl(*typed: str) -> Said:
    return Tables().ctl(*typed)


def column(name: str) -> dict[str, float]:
    """The bill of a workload, as the page has it."""
    rows = re.findall(
        r"^\| ([^|]+) \| ([0-9.,]*) \| ([0-9.,]*) \| ([0-9.,]*) \|$",
        COSTS.replace("**", ""),
        re.MULTILINE,
    )
    return {row[0]: float(row["ABC".index(name) + 1].replace(",", "") or 0) for row in rows}


def test_the_pages_bills_are_what_the_command_prints() -> None:
    for name, command in WORKLOADS.items():
        (said,) = ctl(*command.split(), "--json").documents
        of_page, dollars = column(name), said["dollars_a_month"]
        for line in dollars.keys() - {"total"}:
            of_line = "alarms, metrics, dashboards" if line == "alarms" else line
            assert of_page[of_line] == pytest.approx(dollars[line], abs=0.006), line
        assert of_page["all"] == pytest.approx(dollars["total"], abs=0.5)
        assert dollars["total"] == pytest.approx(
            {"A": 36.6, "B": 153.6, "C": 3_133.6}[name], rel=0.1
        )
        if name in BY_HAND:
            assert dollars["total"] == pytest.approx(BY_HAND[name], rel=0.02)
        changes = said["workload"]["changes"]
        assert of_page["a million changes"] == pytest.approx(
            dollars["total"] / changes * 1e6, rel=0.02
        )
        assert said["largest"] == {"A": "alarms", "B": "http", "C": "changes"}[name]
    readme = " ".join((ROOT / "README.md").read_text().split())
    small, busy = (column(name)["all"] for name in "AB")
    assert f"Two Regions cost [{small:.0f} dollars a month]" in readme
    assert f" in a small shop, {busy:.0f} with 10 million changes" in readme


def test_kept_deltas_cost_as_much_as_deleted_ones_when_said() -> None:
    for regions, pack, row in ((1, 1, "one Region"), (2, 1, "two Regions"), (1, 38, "packs of 38")):
        item_bytes = 69 if pack == 1 else 100 / pack + 24
        overhead = OVERHEAD_BYTES if regions > 1 else 100
        deleted = regions * PRICES["write"] / pack
        kept = (item_bytes + overhead / pack) * 1e6 / 1e9 * regions * PRICES["storage"]
        cells = re.search(rf"^{row} +([0-9.]+) +([0-9.]+) +([0-9]+)$", BILLS, re.MULTILINE)
        assert cells, row
        assert [float(cells[1]), float(cells[2])] == pytest.approx([deleted, kept], abs=0.0006)
        assert int(cells[3]) == round(2 * deleted / kept - 1)
    page = " ".join(COSTS.split())
    assert "after 15 months in one Region, after 12 in two, and after 1 in packs of 38" in page


def test_what_is_beyond_a_lane_or_table_comes_before_the_price() -> None:
    for typed, says in (
        (
            "100000/s --in-regions 2",
            "gets 50,000 changes a second and takes 500 for good: --shards 100 spreads them",
        ),
        ("100000/s --in-regions 2 --no-clean", "takes 1,000 for good: --shards 50 "),
        ("1000000/s", "takes 500 for good: a counter has 1,000 shards at most"),
        ("100000/s --pack 38", "takes 19,000 for good: --shards 6 "),
        ("100000/s --counters 1000000", f"above {TABLE_UNITS_MAX:,} AWS must raise its quota"),
    ):
        said = " ".join(ctl("cost", "--changes", *typed.split()).out.split())
        assert said.index(says) < said.index("dollars a month"), typed
        assert ctl("cost", "--changes", *typed.split(), "--json").documents[0]["beyond"]
    assert ctl("cost", "--changes", "400/s", "--json").documents[0]["beyond"] == []


def test_an_amount_is_a_number_a_month_or_a_rate() -> None:
    for text, number in (
        ("250000", 250_000),
        ("250,000", 250_000),
        ("1.5M", 1.5e6),
        ("2G", 2e9),
        ("1/s", 2_628_000),
    ):
        assert amount(text) == number
    refused(ctl("cost", "--changes", "many"), 2, "'many' is no amount")
    assert ctl("cost", "--changes", "0").code == 0


def test_the_prices_are_those_of_the_page() -> None:
    for row, price in (
        ("DynamoDB write unit, and replicated write unit", PRICES["write"]),
        ("DynamoDB read unit", PRICES["read"]),
        ("DynamoDB storage, with point-in-time recovery", PRICES["storage"]),
    ):
        found = re.search(rf"^{re.escape(row)} +([0-9.]+) a (?:million|GB)", BILLS, re.MULTILINE)
        assert found, row
        assert float(found[1]) == price
    assert "list prices of us-east-1" in " ".join(BILLS.split())
    assert PAGE in BILLS
