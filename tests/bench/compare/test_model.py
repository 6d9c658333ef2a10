"""What the command prints and the charts that it keeps in docs/charts."""

import re

import pytest

from bench.compare.model import CHARTS, RATES, REGIONS, SHARDS, charts, report, table
from bench.compare.partitions import ADD, DESIGNS, assumptions


@pytest.mark.parametrize("name", charts())
def test_the_charts_in_the_docs_are_those_of_the_model(name: str) -> None:
    assert (CHARTS / name).read_text() == charts()[name], "run python -m bench.compare.model"


def test_a_table_has_every_rate_with_every_number_of_shards_and_regions() -> None:
    rows = [line.split() for line in table(ADD)][2:]
    assert [(row[0], row[1]) for row in rows] == [(f"{rate:,}", str(shards)) for rate in RATES for shards in SHARDS]
    assert all(len(re.findall(r"%", " ".join(row))) == len(REGIONS) for row in rows)


def test_a_row_says_what_was_worked_out_by_hand() -> None:
    row = next(line for line in table(ADD) if line.startswith("   10,000      1"))
    assert " ".join(row.split()) == "10,000 1 90.0% 54.0 min 54.00 90.0% 54.0 min 108.00 90.0% 54.0 min 162.00"


def test_the_report_has_the_assumptions_and_every_design() -> None:
    printed = "\n".join(report())
    assert assumptions() in printed
    assert all(f"{design.name}: throttled" in printed for design in DESIGNS)
    assert "20/10/7" in printed
