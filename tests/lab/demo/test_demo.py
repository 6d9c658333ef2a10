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
from lab.demo.event_faults import plan
from lab.demo.outcome import REGIONS, Outcome
from lab.demo.packed import Packed
from lab.demo.runners import Ours
from lab.demo.screen import closing
from lab.events import is_witness
from tests.lab.demo.small import app, small_demo

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


def test_a_run_without_a_mistake_ends_with_0_and_ours_is_exact_where_the_atomic_add_is_not(
    run: tuple[Result, Outcome],
) -> None:
    result, outcome = run
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-1] == PROVED
    ours, packed, added, _ = outcome.designs
    assert isinstance(ours, Ours)
    assert isinstance(packed, Packed)
    assert added.name == "atomic ADD"
    for exact in (ours, packed):
        assert outcome.values[exact.name] == dict.fromkeys(REGIONS, outcome.truth)
    assert packed.accepted > 0
    assert outcome.wrong(added, "eu-west-1", outcome.truth) > 0
    assert outcome.answers_lost > 0
    assert outcome.deliveries == outcome.changes + outcome.redeliveries > outcome.changes
    report = outcome.ours.report
    assert min(report.folded, report.settled, report.cleaned) > 0
    assert min(outcome.late, outcome.partitions, outcome.fail_overs) > 0


def closed(outcome: Outcome, proved: bool) -> str:
    """What is printed at the end on 80 columns."""
    file = io.StringIO()
    assert closing(Console(file=file, width=80, highlight=False, soft_wrap=True), outcome, 12.3) == proved
    return file.getvalue()


def test_the_end_fits_80_columns_and_shows_a_witness_by_its_digits_where_a_read_was_not_true(outcome: Outcome) -> None:
    printed = closed(outcome, proved=True)
    assert printed.splitlines()[-1] == PROVED
    assert max(map(len, printed.splitlines())) <= 80
    assert "\x1b" not in printed
    assert re.search(r"^atomic ADD read witness:\d\d in \S+ as [0-3]{28}$", printed, re.MULTILINE)


def test_the_summary_fits_24_lines_with_the_prompt_and_wrong_numbers_are_red(outcome: Outcome) -> None:
    lines = closed(outcome, proved=True).splitlines()
    (head,) = (at for at, line in enumerate(lines) if re.fullmatch(r"\d+ counters and \d+ witnesses", line.strip()))
    assert len(lines[head:]) <= 23
    file = io.StringIO()
    console = Console(
        file=file, width=80, highlight=False, soft_wrap=True, force_terminal=True, color_system="standard"
    )
    closing(console, outcome, 12.3)
    red = {re.sub(r"[^\d-]", "", each) for each in re.findall(r"\x1b\[1;31m([^\x1b]*)", file.getvalue())}
    added = outcome.values["atomic ADD"]["eu-west-1"]
    counters = [counter for counter in outcome.truth if not is_witness(counter)]
    wrong, right = (sum(held[counter] for counter in counters) for held in (added, outcome.truth))
    assert str(wrong) in red
    assert str(right) not in red


def test_one_number_that_is_off_is_said_with_what_is_wrong(outcome: Outcome) -> None:
    counter = next(iter(outcome.truth))
    values = {name: {region: dict(held) for region, held in found.items()} for name, found in outcome.values.items()}
    values[Ours.name]["us-east-1"][counter] += 1
    *_, wrong, what = closed(replace(outcome, values=values), proved=False).splitlines()
    assert wrong.startswith("A number of ours is wrong.")
    assert what == "- values of ours that are wrong at the end: 1"


@pytest.mark.parametrize(
    ("lacking", "says"),
    [(Report(folded=9, cleaned=9), "no stray was settled"), (Report(folded=9, settled=9), "no delta was cleaned")],
)
def test_a_run_that_shows_too_little_is_no_success(
    outcome: Outcome, monkeypatch: pytest.MonkeyPatch, lacking: Report, says: str
) -> None:
    monkeypatch.setattr(outcome.ours, "report", lacking)
    assert closed(outcome, proved=False).splitlines()[-1].startswith(f"- {says}")


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
