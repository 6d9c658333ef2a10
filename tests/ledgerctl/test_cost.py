"""`cost` and its prices are held against docs/costs.md, and dollars against those worked out by hand."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from ledgerctl.app import app
from ledgerctl.bill import PRICES, Usage, million_changes, million_reads, storage_month
from ledgerctl.cost import amount
from ledgerctl.workload import LANES_MAX, MARKS_MAX, SECONDS, TABLE_UNITS_MAX, Workload, beyond, bill_of, read_units
from tests.ledgerctl.support import Tables

ROOT = Path(__file__).parents[2]
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
    load = WORKLOADS[name]
    bill = bill_of(load)
    assert bill.changes + bill.marks == pytest.approx(dollars("DynamoDB writes, both Regions", name), rel=0.01)
    reads = dollars("DynamoDB reads: readers, visits, plan, find", name)
    assert bill.reads + bill.compactor == pytest.approx(reads, rel=0.01)
    traffic = dollars("storage after a year; traffic", name) - bill.storage
    millions = load.changes / 1e6  # of 0.5 to 2.5 KB each, with their marks, at 0.02 a GB
    assert 0.01 * millions - 0.005 <= traffic <= 0.055 * millions + 0.005


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_units_of_the_page_on_costs_are_those_of_the_rules_and_add_up(name: str) -> None:
    load, life, marks = WORKLOADS[name], dollars("life of the change", name), dollars("marks", name)
    of_lane = load.load()
    assert life == pytest.approx(of_lane.change_units / of_lane.rate, abs=0.01)
    assert marks == pytest.approx(of_lane.mark_units / of_lane.rate, abs=0.01)
    assert dollars("**write units a change**", name) == pytest.approx(life + marks)
    written = (life + marks) * load.regions * PRICES.write * load.changes / 1e6
    assert dollars("DynamoDB writes, both Regions", name) == pytest.approx(written, rel=0.005)


def test_the_page_on_costs_says_what_visits_and_reads_take() -> None:
    page = " ".join(COSTS.split())
    found = re.search(r"a lane with (\d+) changes a second takes (\d+)", page)
    assert found
    hot = Workload(float(found[1]) * SECONDS, 0, counters=1, regions=1)
    assert round(read_units(hot)) == int(found[2])
    for name in "AB":
        load = WORKLOADS[name].load()
        assert load.visit_units / load.visits == pytest.approx(10, abs=0.5)
        visits = re.search(r"visits of the compactor" + 2 * r" \| ([0-9.]+) a change", page)
        assert visits
        assert load.visits / load.rate == pytest.approx(float(visits["AB".index(name) + 1]), abs=0.006)
    busy = WORKLOADS["C"].load()
    assert f"{busy.visit_units / busy.visits:.0f} in C" in page
    assert busy.visits == pytest.approx(1 / 60, rel=0.001)


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_bill_of_the_page_on_costs_adds_up(name: str) -> None:
    bill = COSTS.partition("## The bill")[2].partition("| **all**")[0]
    rows = re.findall(r"^\| ([^|]+) \| [0-9]", bill, re.MULTILINE)
    assert len(rows) == 8
    whole = dollars("**all**", name)
    assert whole == pytest.approx(sum(dollars(row, name) for row in rows), abs=0.5)
    assert dollars("**a million changes**", name) == pytest.approx(whole / WORKLOADS[name].changes * 1e6, rel=0.02)


def test_too_few_changes_to_fold_cost_their_put_alone() -> None:
    few, enough = (Workload(changes=n, reads=0, counters=1, regions=1).load() for n in (1, 3))
    assert few.change_units == few.rate
    assert enough.change_units > 2.0 * enough.rate  # 36 in a year
    assert bill_of(Workload(0, 0, 1, 1)).changes == 0.0


@pytest.mark.parametrize(
    ("text", "number"), [("250000", 250_000), ("250,000", 250_000), ("1.5M", 1.5e6), ("2G", 2e9), ("1/s", 2_628_000)]
)
def test_an_amount_is_a_number_a_month_or_a_rate(text: str, number: float) -> None:
    assert amount(text) == number


def test_the_bill_is_json_too() -> None:
    (said,) = Tables().ctl("cost", "--changes", "10M", "--reads", "1M", "--json").documents
    total, *parts = sorted(said["dollars_a_month"].values(), reverse=True)
    assert said["dollars_a_month"]["total"] == total == pytest.approx(sum(parts), abs=0.03)
    assert said["prices"]["region"] == "us-east-1"


def test_a_read_of_a_hot_counter_pays_for_its_tail() -> None:
    """40 seconds of 500 changes, each of 69 bytes, at 4 KB a unit."""
    (said,) = Tables().ctl("cost", "--changes", "500/s", "--reads", "1/s", "--json").documents
    units = said["dollars_a_month"]["reads"] / PRICES.read * 1e6 / SECONDS
    assert units == pytest.approx(1 + 40 * 500 * 69 / 4096, rel=0.01)


def test_storage_pays_for_keys_and_for_what_aws_adds_to_an_item() -> None:
    """24 bytes an entry; 85 of a segment and 148 of AWS are shared by 32 changes."""
    load = Workload(changes=1e7, reads=0, counters=5_000, regions=2)
    bytes_of_a_change = 24 + (85 + 148) / 32
    assert bill_of(load).storage == pytest.approx(2 * 12e7 * bytes_of_a_change / 1e9 * PRICES.storage, rel=0.02)


def test_a_load_that_the_service_cannot_plan_is_told_before_its_price() -> None:
    big = ("cost", "--changes", "100000/s", "--counters", "1000000", "--in-regions", "2")
    said = Tables().ctl(*big).out
    assert f"plan sends {LANES_MAX:,}" in said
    assert f"above about {MARKS_MAX:,}" in " ".join(said.split())
    assert f"above {TABLE_UNITS_MAX:,} AWS must raise its quota" in " ".join(said.split())
    assert said.index("Beyond the service") < said.index("price if it could") < said.index("dollars a month")
    (document,) = Tables().ctl(*big, "--json").documents
    assert len(document["beyond"]) == 3
    assert document["dollars_a_month"]["total"] > 0


def test_what_the_service_can_do_is_not_told_as_beyond_it() -> None:
    assert not [line for load in WORKLOADS.values() for line in beyond(load)]
    assert not list(beyond(Workload(0, 0, 1, 1)))
    lanes = Workload(LANES_MAX * 60 * SECONDS, 0, counters=LANES_MAX, regions=1)  # always due, each of them
    assert not [line for line in beyond(lanes) if "plan" in line]
    more = Workload(lanes.changes * 1.01, 0, counters=int(LANES_MAX * 1.01), regions=1)
    assert [line for line in beyond(more) if "plan" in line]


def test_more_than_a_lane_takes_is_refused_with_the_shards_that_it_needs() -> None:
    hot = ("cost", "--changes", "100000/s", "--in-regions", "2")
    refused = Tables().ctl(*hot)
    assert (refused.code, refused.out) == (2, "")
    assert "50,000 changes a second and takes 500" in refused.err
    assert "--shards 100 " in refused.err
    assert Tables().ctl(*hot, "--shards", "99").code == 2
    assert Tables().ctl(*hot, "--shards", "100").code == 0
    assert "2,000 shards; a counter has 1,000 at most" in Tables().ctl("cost", "--changes", "1000000/s").err


def test_a_read_asks_every_shard_in_every_region() -> None:
    assert read_units(Workload(1e5, 0, counters=10, regions=2, shards=4)) == 2 * 4 * 2
    assert read_units(Workload(0, 0, counters=10, regions=3)) == 2 * 3


def test_completion_knows_every_command() -> None:
    environ = {"_LEDGERCTL_COMPLETE": "complete_bash", "COMP_WORDS": "ledgerctl reb", "COMP_CWORD": "1"}
    said = CliRunner().invoke(app, [], env=environ, prog_name="ledgerctl")
    assert said.stdout.split() == ["rebuild"]


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
