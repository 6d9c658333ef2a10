"""The demo from end to end, small, on the embedded engine; and what it says when it cannot run."""

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from compactor import Report
from lab.demo.designs import Ours
from lab.demo.faults import plan
from lab.demo.outcome import REGIONS, Outcome
from lab.demo.screen import REST_S, Screen, about, closing, opening
from lab.events import shop_day, truth_of
from tests.lab.demo.small import WITNESSES, app, small_demo

PROVED = "Every number of ours is right, in both Regions, and every read was a true sum."


@pytest.fixture(scope="module")
def run() -> Iterator[tuple[Result, Outcome]]:
    """A small run on the embedded engine, where it is installed."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        result, left = small_demo(monkeypatch)
        assert left is not None, result.output
        yield result, left


@pytest.fixture
def outcome(run: tuple[Result, Outcome]) -> Outcome:
    return run[1]


def test_a_run_without_a_mistake_ends_with_0(run: tuple[Result, Outcome]) -> None:
    result, _ = run
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-1] == PROVED


def test_ours_is_exact_where_the_atomic_add_is_not(outcome: Outcome) -> None:
    ours, added = outcome.designs[0], outcome.designs[1]
    assert isinstance(ours, Ours)
    assert added.name == "atomic ADD"
    assert {region: outcome.values[ours.name][region] for region in REGIONS} == dict.fromkeys(REGIONS, outcome.truth)
    assert outcome.wrong(added, "eu-west-1", outcome.truth) > 0
    assert outcome.answers_lost > 0
    assert outcome.deliveries == outcome.changes + outcome.redeliveries > outcome.changes


def test_a_run_has_strays_settles_and_cleans_and_fails_over_while_the_link_is_cut(outcome: Outcome) -> None:
    report = outcome.ours.report
    assert min(report.folded, report.settled, report.cleaned) > 0
    assert min(outcome.late, outcome.partitions, outcome.fail_overs) > 0


def test_the_last_line_says_what_was_proved_in_80_columns_without_control_codes(outcome: Outcome) -> None:
    screen = console()
    assert closing(screen, outcome, 12.3)
    lines = printed(screen).splitlines()
    assert lines[-1] == PROVED
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in printed(screen)


def test_the_summary_and_the_verdict_fit_24_lines_with_the_prompt(outcome: Outcome) -> None:
    screen = console()
    closing(screen, outcome, 12.3)
    lines = printed(screen).splitlines()
    (head,) = (n for n, line in enumerate(lines) if line.endswith(f"and {WITNESSES} witnesses"))
    assert len(lines) - head <= 23


def test_a_witness_is_shown_by_its_digits_where_a_read_was_not_true(outcome: Outcome) -> None:
    screen = console()
    closing(screen, outcome, 12.3)
    assert re.search(r"^atomic ADD read witness:\d\d in \S+ as [0-3]{28}$", printed(screen), re.MULTILINE)


def test_what_is_wrong_is_red_and_no_mistake_is_green(outcome: Outcome) -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=80, color_system="standard", _environ={})
    closing(screen, outcome, 12.3)
    (row,) = (line for line in printed(screen).splitlines()[-19:-14] if "witnesses wrong" in line)
    cells = re.sub(r" +", " ", row)
    assert "\x1b[32m0\x1b[0m" in cells
    assert f"\x1b[1;31m{WITNESSES}\x1b[0m" in cells


def test_one_number_that_is_off_is_said_with_what_is_wrong(outcome: Outcome) -> None:
    counter = next(iter(outcome.truth))
    values = {name: {region: dict(held) for region, held in found.items()} for name, found in outcome.values.items()}
    values[Ours.name]["us-east-1"][counter] += 1
    screen = console()
    assert not closing(screen, replace(outcome, values=values), 12.3)
    assert printed(screen).splitlines()[-2].startswith("A number of ours is wrong.")
    assert printed(screen).splitlines()[-1] == "- values of ours that are wrong at the end: 1"


@pytest.mark.parametrize(
    ("lacking", "says"),
    [(Report(folded=9, cleaned=9), "no stray was settled"), (Report(folded=9, settled=9), "no delta was cleaned")],
)
def test_a_run_that_shows_too_little_is_no_success(
    outcome: Outcome, monkeypatch: pytest.MonkeyPatch, lacking: Report, says: str
) -> None:
    monkeypatch.setattr(outcome.ours, "report", lacking)
    screen = console()
    assert not closing(screen, outcome, 12.3)
    assert printed(screen).splitlines()[-1].startswith(f"- {says}")


@pytest.mark.parametrize("name", ["a shop's day", "online-retail-of-a-whole-year-and-its-returns.csv"])
def test_the_first_screen_explains_in_four_lines_of_80_columns(name: str) -> None:
    lines = opening(name, 1_067_371, 672).splitlines()
    assert len(lines) == 4
    assert max(map(len, lines)) <= 80
    assert "".join(lines).isascii()


@pytest.mark.parametrize("environment", [{}, {"TERM": "dumb", "FORCE_COLOR": "1"}], ids=["piped", "dumb"])
def test_what_cannot_be_drawn_is_told_in_lines(environment: dict[str, str]) -> None:
    screen = Console(file=io.StringIO(), width=80, soft_wrap=True, _environ=environment)
    clock = iter(range(1_000))
    with Screen(screen, 40, now=lambda: next(clock)) as told:
        for number in range(44):
            told.advance(int(number < 40))
            told.link(whole=number % 2 == 0)
        told.say("coming to rest")
    lines = printed(screen).splitlines()
    assert lines == [f"{n} of 40 events, {about(40 - n + REST_S)} to go" for n in range(4, 40, 4)] + ["coming to rest"]


@pytest.mark.parametrize(
    ("seconds", "says"),
    [(3, "about 10 s"), (84, "about 80 s"), (200, "about 3 minutes"), (15_300, "about 4 hours")],
)
def test_a_time_is_said_as_roughly_as_it_is_known(seconds: float, says: str) -> None:
    assert about(seconds) == says


def test_the_length_of_many_events_is_said_before_they_are_played() -> None:
    assert "takes about 5 minutes" in opening("events.csv", 20_000, 672)
    assert "takes about 80 s" in opening("a shop's day", 3_000, 672)


def test_without_colour_a_terminal_is_drawn_on_in_one_line_of_80_columns() -> None:
    environment = {"TERM": "xterm-256color", "NO_COLOR": "1", "COLUMNS": "80"}
    screen = Console(file=io.StringIO(), force_terminal=True, width=80, _environ=environment)
    with Screen(screen, 3_672) as told:
        for _ in range(3_672):
            told.advance(1)
        told.say("coming to rest")
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", printed(screen)).splitlines()
    assert "3,672 of 3,672 events" in drawn[-1]
    assert drawn[-1].rstrip().endswith("coming to rest")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", printed(screen))


def console() -> Console:
    return Console(file=io.StringIO(), width=80, highlight=False, soft_wrap=True)


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
    assert {p.last for p in plans if p.late} == {True, False}
    assert replace(plans[0], home="x") not in plans


def test_the_truth_is_of_every_event_once() -> None:
    shop = shop_day(1, 40)
    assert sum(truth_of(shop).values()) == sum(event.change for event in shop)
