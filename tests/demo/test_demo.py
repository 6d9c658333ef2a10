"""The demo from end to end, small, on the embedded engine; and what it says when it cannot run."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from demo.__main__ import main
from demo.designs import AtomicAdd, Ours
from demo.engine import EngineMissing, find_executable
from demo.events import shop_day, truth_of, witness_events
from demo.faults import plan
from demo.play import REGIONS, Play

app = typer.Typer()
app.command()(main)


@pytest.fixture
def engine_there() -> None:
    try:
        find_executable(os.environ, sys.prefix)
    except EngineMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.usefixtures("engine_there")
def test_ours_is_exact_where_the_atomic_add_is_not() -> None:
    shop = shop_day(3, 120)
    events = sorted([*shop, *witness_events(shop, 3)[:300]], key=lambda event: event.at)
    outcome = Play(events, 3, advance=lambda count: None, say=lambda text: None).run()
    ours, added = outcome.designs[0], outcome.designs[1]
    assert isinstance(ours, Ours)
    assert isinstance(added, AtomicAdd)
    assert outcome.ours_is_exact
    assert {region: outcome.values[ours.name][region] for region in REGIONS} == dict.fromkeys(REGIONS, outcome.truth)
    assert outcome.wrong(added, "eu-west-1", outcome.truth) > 0
    assert outcome.answers_lost > 0
    assert outcome.deliveries == len(events) + outcome.redeliveries > len(events)
    assert ours.report.folded > 0
    # One number off is seen.
    counter = next(iter(outcome.truth))
    outcome.values[ours.name]["us-east-1"][counter] += 1
    assert not outcome.ours_is_exact


def test_a_file_that_cannot_be_used_exits_with_2_and_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("line,invoice,stock_code,quantity,invoiced_at\n1,5,A,six,2010-12-01T09:32:00Z\n")
    result = CliRunner().invoke(app, ["--events", str(path)])
    assert result.exit_code == 2
    assert "line 2" in result.output


def test_a_plan_depends_on_the_seed_and_the_number_alone() -> None:
    assert plan(1, 5, REGIONS) == plan(1, 5, REGIONS)
    plans = [plan(1, number, REGIONS) for number in range(2_000)]
    assert {p.home for p in plans} == set(REGIONS)
    assert {p.lost for p in plans} == {0, 1, 3}
    assert any(p.redelivered_after for p in plans)
    assert replace(plans[0], home="x") not in plans


def test_the_truth_is_of_every_event_once() -> None:
    shop = shop_day(1, 40)
    assert sum(truth_of(shop).values()) == sum(event.change for event in shop)
