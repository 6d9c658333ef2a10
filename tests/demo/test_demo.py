"""The demo from end to end, small, on the embedded engine; and what it says when it cannot run."""

import io
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from demo.__main__ import main
from demo.designs import AtomicAdd, Ours
from demo.engine import EngineMissing, find_executable
from demo.events import Event, shop_day, truth_of, witness_events
from demo.faults import plan
from demo.play import REGIONS, Outcome, Play
from demo.screen import Screen, closing, opening

app = typer.Typer()
app.command()(main)


@pytest.fixture(scope="module")
def events() -> list[Event]:
    shop = shop_day(3, 120)
    return sorted([*shop, *witness_events(shop, 3)[:300]], key=lambda event: event.at)


@pytest.fixture(scope="module")
def outcome(events: list[Event]) -> Outcome:
    """A small run on the embedded engine, where it is installed."""
    try:
        find_executable(os.environ, sys.prefix)
    except EngineMissing as missing:
        pytest.skip(str(missing))
    return Play(events, 3, advance=lambda count: None, say=lambda text: None).run()


def test_ours_is_exact_where_the_atomic_add_is_not(events: list[Event], outcome: Outcome) -> None:
    ours, added = outcome.designs[0], outcome.designs[1]
    assert isinstance(ours, Ours)
    assert isinstance(added, AtomicAdd)
    assert outcome.ours_is_exact
    assert {region: outcome.values[ours.name][region] for region in REGIONS} == dict.fromkeys(REGIONS, outcome.truth)
    assert outcome.wrong(added, "eu-west-1", outcome.truth) > 0
    assert outcome.answers_lost > 0
    assert outcome.deliveries == len(events) + outcome.redeliveries > len(events)
    assert ours.report.folded > 0


def test_the_last_line_says_what_was_proved_in_80_columns_without_control_codes(outcome: Outcome) -> None:
    screen = Console(file=io.StringIO(), width=80, highlight=False, soft_wrap=True)
    assert closing(screen, outcome, 12.3)
    lines = printed(screen).splitlines()
    assert lines[-1] == "Every number of ours is right, in both Regions, and every read was a true sum."
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in printed(screen)


def test_one_number_that_is_off_is_said_in_the_last_line(outcome: Outcome) -> None:
    counter = next(iter(outcome.truth))
    values = {name: {region: dict(held) for region, held in found.items()} for name, found in outcome.values.items()}
    values[Ours.name]["us-east-1"][counter] += 1
    screen = Console(file=io.StringIO(), width=80, highlight=False, soft_wrap=True)
    assert not closing(screen, replace(outcome, values=values), 12.3)
    assert printed(screen).splitlines()[-1].startswith("A number of ours is wrong.")


@pytest.mark.parametrize("name", ["a shop's day", "online-retail-of-a-whole-year-and-its-returns.csv"])
def test_the_first_screen_explains_in_three_lines_of_80_columns(name: str) -> None:
    lines = opening(name, 1_067_371, 672).splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) <= 80
    assert "".join(lines).isascii()


@pytest.mark.parametrize("environment", [{}, {"TERM": "dumb", "FORCE_COLOR": "1"}], ids=["piped", "dumb"])
def test_what_cannot_be_drawn_is_told_in_lines(environment: dict[str, str]) -> None:
    screen = Console(file=io.StringIO(), width=80, soft_wrap=True, _environ=environment)
    with Screen(screen, 40) as told:
        for number in range(44):
            told.advance(int(number < 40))
        told.say("the link is cut")
    assert printed(screen).splitlines() == [f"{n} of 40 events" for n in range(4, 41, 4)] + ["the link is cut"]


def test_without_colour_a_terminal_is_drawn_on_in_one_line_of_80_columns() -> None:
    environment = {"TERM": "xterm-256color", "NO_COLOR": "1", "COLUMNS": "80"}
    screen = Console(file=io.StringIO(), force_terminal=True, width=80, _environ=environment)
    with Screen(screen, 3_672) as told:
        for _ in range(3_672):
            told.advance(1)
        told.say("the link is healed")
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", printed(screen)).splitlines()
    assert "3,672 of 3,672 events" in drawn[-1]
    assert drawn[-1].rstrip().endswith("the link is healed")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", printed(screen))


def printed(screen: Console) -> str:
    file = screen.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


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
