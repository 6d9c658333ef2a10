"""`cost` and its prices are held against docs/costs.md, and dollars against those worked out by hand."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from ledgerctl.__main__ import app
from ledgerctl.bill import PRICES, Usage, million_changes, million_reads, storage_month
from ledgerctl.cost import amount
from ledgerctl.workload import SECONDS, TABLE_UNITS_MAX, Workload, beyond, bill_of, read_units
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
    assert bill.changes == pytest.approx(dollars("DynamoDB writes, both Regions", name), rel=0.01, abs=0.005)
    assert bill.reads + bill.compactor == pytest.approx(dollars("DynamoDB reads: readers, visits", name), rel=0.01)
    found = "finding work: ring, its queue, looks, the sweep"
    assert bill.finding == pytest.approx(dollars(found, name), rel=0.01)
    traffic = dollars("storage after a year; traffic", name) - bill.storage
    millions = load.changes / 1e6  # of some 0.2 to 0.6 KB each, at 0.02 a GB
    assert -0.005 <= traffic <= 0.015 * millions + 0.01


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_units_of_the_page_on_costs_are_those_of_the_rules_and_add_up(name: str) -> None:
    load, units = WORKLOADS[name], dollars("write units a change", name)
    of_lane = load.load()
    assert units == pytest.approx(of_lane.write_units / of_lane.rate, abs=0.01)
    assert dollars("the same, deltas kept", name) == pytest.approx(units - 1.01, abs=0.015)
    written = units * load.regions * PRICES.write * load.changes / 1e6
    assert dollars("DynamoDB writes, both Regions", name) == pytest.approx(written, rel=0.005, abs=0.005)
    looks = dollars("messages of the work queue a change", name)
    assert looks == pytest.approx(of_lane.messages / of_lane.rate, abs=0.005)


def test_the_page_on_costs_says_what_visits_and_reads_take() -> None:
    page = " ".join(COSTS.split())
    found = re.search(r"a lane with (\d+) changes a second takes (\d+)", page)
    assert found
    hot = Workload(float(found[1]) * SECONDS, 0, counters=1, regions=1)
    assert round(read_units(hot)) == int(found[2])
    for load in WORKLOADS.values():
        of_lane = load.load()
        assert of_lane.visit_units * of_lane.fold_s == pytest.approx(8.5, abs=0.5)
        assert read_units(load) == pytest.approx(4.5, abs=0.05)


def test_what_deleting_costs_and_keeping_and_when_they_are_even_is_on_the_page() -> None:
    page = " ".join(COSTS.split())
    for regions, pack, said in ((1, 1, "one Region"), (2, 1, "two Regions"), (1, 38, "packs of 38")):
        choice = Workload(1e6, 0, 1, regions, pack=pack).choice
        row = re.search(rf"\| {said} \| ([0-9.]+) \| ([0-9.]+) \| ([0-9]+) \|", page)
        assert row, said
        assert float(row[1]) == pytest.approx(choice.deleted, abs=0.0006)
        assert float(row[2]) == pytest.approx(choice.kept_month, abs=0.0006)
        assert int(row[3]) == round(choice.break_even)


def test_cost_chooses_what_is_cheaper_until_then_and_says_why() -> None:
    def chosen(*options: str) -> tuple[bool, str]:
        (said,) = Tables().ctl("cost", "--changes", "1M", *options, "--json").documents
        return said["clean"]["value"], said["clean"]["why"]

    assert chosen("--after-months", "15")[0] is False
    later, why = chosen("--after-months", "16")
    assert later is True
    assert "0.625 dollars (1.00 write units each), kept 0.076 a month" in why
    assert "as much as deleted after 15" in why
    assert chosen("--pack", "38", "--after-months", "3")[0] is True
    assert chosen("--after-months", "1", "--clean")[0] is True
    assert "clean=true, as you say" in Tables().ctl("cost", "--changes", "1M", "--clean").out
    assert chosen("--after-months", "99", "--no-clean")[0] is False


def test_what_a_lane_takes_only_if_nothing_is_deleted_is_kept() -> None:
    (said,) = Tables().ctl("cost", "--changes", "800/s", "--after-months", "60", "--json").documents
    assert (said["clean"]["value"], said["a_lane_takes"]) == (False, 1_000)
    assert "a lane takes so many changes only if none is deleted" in said["clean"]["why"]
    refused = Tables().ctl("cost", "--changes", "800/s", "--clean")
    assert (refused.code, "takes 500" in refused.err, "--shards 2 " in refused.err) == (2, True, True)


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_bill_of_the_page_on_costs_adds_up(name: str) -> None:
    bill = COSTS.partition("## The bill")[2].partition("| **all**")[0]
    rows = re.findall(r"^\| ([^|]+) \| [0-9]", bill, re.MULTILINE)
    assert len(rows) == 8
    whole = dollars("**all**", name)
    assert whole == pytest.approx(sum(dollars(row, name) for row in rows), abs=0.5)
    assert dollars("**a million changes**", name) == pytest.approx(whole / WORKLOADS[name].changes * 1e6, rel=0.02)


def test_too_few_changes_to_fold_cost_their_put_alone() -> None:
    few, enough = (Workload(changes=n, reads=0, counters=1, regions=1, clean=True).load() for n in (1, 3))
    assert few.write_units == few.rate
    assert enough.write_units > 2.0 * enough.rate  # 36 in a year
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
    (said,) = Tables().ctl("cost", "--changes", "500/s", "--reads", "1/s", "--clean", "--json").documents
    units = said["dollars_a_month"]["reads"] / PRICES.read * 1e6 / SECONDS
    assert units == pytest.approx(1 + 40 * 500 * 69 / 4096, rel=0.01)


def test_storage_pays_for_keys_and_for_what_aws_adds_to_an_item() -> None:
    """24 bytes an entry; 85 of a segment and 148 of AWS are shared by some 63 changes; a delta has 69 and 148."""
    load = Workload(changes=1e8, reads=0, counters=5_000, regions=2, clean=True)
    bytes_of_a_change = 24 + (85 + 148) / 63
    assert bill_of(load).storage == pytest.approx(2 * 12e8 * bytes_of_a_change / 1e9 * PRICES.storage, rel=0.02)
    kept = replace(load, clean=False)
    bytes_of_a_change += 69 + 148
    assert bill_of(kept).storage == pytest.approx(2 * 12e8 * bytes_of_a_change / 1e9 * PRICES.storage, rel=0.01)


def test_a_load_that_a_table_does_not_take_is_told_before_its_price() -> None:
    big = ("cost", "--changes", "100000/s", "--counters", "1000000", "--in-regions", "2")
    said = Tables().ctl(*big).out
    assert f"above {TABLE_UNITS_MAX:,} AWS must raise its quota" in " ".join(said.split())
    assert said.index("Beyond the table") < said.index("price if it could") < said.index("dollars a month")
    (document,) = Tables().ctl(*big, "--json").documents
    assert len(document["beyond"]) == 1
    assert document["dollars_a_month"]["total"] > 0


def test_any_number_of_lanes_is_found() -> None:
    """Nothing in the design is the worse for there being many: the price of finding grows with changes and lanes."""
    assert not [line for load in WORKLOADS.values() for line in beyond(load)]
    assert not list(beyond(Workload(0, 0, 1, 1)))
    million, ten = (Workload(1e10 * n, 0, counters=10**6 * n, regions=1) for n in (1, 10))
    assert not list(beyond(million))
    assert bill_of(ten).finding == pytest.approx(10 * bill_of(million).finding, rel=0.02)


def test_more_than_a_lane_takes_is_refused_with_the_shards_that_it_needs() -> None:
    hot = ("cost", "--changes", "100000/s", "--in-regions", "2")
    refused = Tables().ctl(*hot)
    assert (refused.code, refused.out) == (2, "")
    assert "50,000 changes a second and takes 500" in refused.err
    assert "--shards 100 " in refused.err
    assert Tables().ctl(*hot, "--clean", "--shards", "99").code == 2
    assert Tables().ctl(*hot, "--shards", "100").code == 0
    kept = Tables().ctl(*hot, "--no-clean")
    assert "takes 1,000 for good, because each is put." in kept.err
    assert "--shards 50 " in kept.err
    assert "2,000 shards; a counter has 1,000 at most" in Tables().ctl("cost", "--changes", "1000000/s", "--clean").err


def test_a_read_asks_every_shard_in_every_region() -> None:
    assert read_units(Workload(1e5, 0, counters=10, regions=2, shards=4)) == pytest.approx(2.25 * 4 * 2, rel=0.01)
    assert read_units(Workload(0, 0, counters=10, regions=3)) == 2 * 3


def test_completion_knows_every_command() -> None:
    environ = {"_LEDGERCTL_COMPLETE": "complete_bash", "COMP_WORDS": "ledgerctl\nver", "COMP_CWORD": "1"}
    said = CliRunner().invoke(app, [], env=environ, prog_name="ledgerctl")
    assert said.stdout.split() == ["verify"]


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
