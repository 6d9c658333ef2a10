"""`cost` is held against docs/costs.md, and the program against its own help."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infra.ledgerctl.bill import PRICES
from infra.ledgerctl.cost import Workload, amount, bill_of, life_units, mark_units
from tests.infra.ledgerctl.support import Tables

ROOT = Path(__file__).parents[3]
COSTS = (ROOT / "docs" / "costs.md").read_text()
WORKLOADS = {
    "A": Workload(changes=1e5, reads=3e5, counters=2_000, regions=2),
    "B": Workload(changes=1e7, reads=3e7, counters=5_000, regions=2),
    "C": Workload(changes=1e9, reads=0.05e9, counters=1_000, regions=2),
}


def dollars(row: str, workload: str) -> float:
    found = re.search(rf"^\| {re.escape(row)} \|" + 3 * r" \**([0-9.,]*)\** ?\|" + "$", COSTS, re.MULTILINE)
    assert found, row
    return float(found["ABC".index(workload) + 1].replace(",", "") or 0)


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_workloads_of_the_page_on_costs_cost_what_it_says(name: str) -> None:
    bill = bill_of(WORKLOADS[name])
    assert bill.changes + bill.marks == pytest.approx(dollars("DynamoDB writes, both Regions", name), rel=0.01)
    reads = dollars("DynamoDB reads: readers, visits, plan, find", name)
    assert bill.reads + bill.compactor == pytest.approx(reads, rel=0.01)


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_units_of_the_page_on_costs_are_those_of_the_rules_and_add_up(name: str) -> None:
    load, life, marks = WORKLOADS[name], dollars("life of the change", name), dollars("marks", name)
    assert life == pytest.approx(life_units(load), abs=0.01)
    assert marks == pytest.approx(mark_units(load), abs=0.01)
    assert dollars("**write units a change**", name) == pytest.approx(life + marks)
    written = (life + marks) * load.regions * PRICES.write * load.changes / 1e6
    assert dollars("DynamoDB writes, both Regions", name) == pytest.approx(written, abs=0.005)


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_bill_of_the_page_on_costs_adds_up(name: str) -> None:
    bill = COSTS.partition("## The bill")[2].partition("| **all**")[0]
    rows = re.findall(r"^\| ([^|]+) \| [0-9]", bill, re.MULTILINE)
    assert len(rows) == 8
    whole = dollars("**all**", name)
    assert whole == pytest.approx(sum(dollars(row, name) for row in rows), abs=0.5)
    assert dollars("**a million changes**", name) == pytest.approx(whole / WORKLOADS[name].changes * 1e6, rel=0.02)


def test_too_few_changes_to_fold_cost_their_put_alone() -> None:
    assert life_units(Workload(changes=1, reads=0, counters=1, regions=1)) == 1.0
    assert life_units(Workload(changes=3, reads=0, counters=1, regions=1)) > 2.0  # 36 in a year
    assert bill_of(Workload(0, 0, 1, 1)).changes == 0.0


@pytest.mark.parametrize(
    ("text", "number"), [("250000", 250_000), ("250,000", 250_000), ("1.5M", 1.5e6), ("2G", 2e9), ("1/s", 2_628_000)]
)
def test_an_amount_is_a_number_a_month_or_a_rate(text: str, number: float) -> None:
    assert amount(text) == number


def test_the_bill_is_json_too() -> None:
    (said,) = Tables().ctl("cost", "--changes", "10M", "--reads", "1M", "--json").documents
    assert said["dollars_a_month"]["total"] == pytest.approx(
        sum(v for k, v in said["dollars_a_month"].items() if k != "total"), abs=0.03
    )
    assert said["prices"]["region"] == "us-east-1"


def test_completion_knows_every_command() -> None:
    environ = {"_LEDGERCTL_COMPLETE": "complete_bash", "COMP_WORDS": "ledgerctl re", "COMP_CWORD": "1"}
    from typer.testing import CliRunner

    from infra.ledgerctl.app import app

    said = CliRunner().invoke(app, [], env=environ, prog_name="ledgerctl")
    assert said.stdout.split() == ["rebuild"]
