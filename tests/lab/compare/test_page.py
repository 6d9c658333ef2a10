"""The table to choose by: what it sums."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from lab.compare import __main__ as compare
from lab.compare.accuracy import SETTINGS, Accuracy
from lab.compare.changes import Counted, Reads
from lab.compare.cost import Spent
from lab.compare.page import Found
from lab.compare.scale import CHANGES, Read
from lab.compare.scenarios import SCENARIOS
from lab.compare.speed import Pace
from lab.compare.tables import GROUPS, Row, choice
from lab.designs import every
from lab.meters.charge import Charge

OURS = next(design for design in every(SETTINGS) if design.name == "this library")
FAULTS = {each.name: Counted(400, 1, 2, 0, Reads(100, 3, 4)) for each in SCENARIOS}


def test_a_row_sums_what_befell_an_design() -> None:
    row = Row(
        OURS,
        Accuracy(OURS.name, False, FAULTS, {}),
        Spent(OURS, 100, 10, Charge(100, 0, 100, 100), Charge(7, 20.0, 50, 50), Charge(10, 20.0), 24.0, 0.5),
        [Read(OURS.name, n, 1, 29, n / 100, 1, measured=n < 10**5) for n in CHANGES],
        Pace(OURS.name, 32, 1, 10, 3, 4.0, 1.0, 1.0, 0, 0, 0),
    )
    wrong = " | ".join(f"{len(names)} / {2 * len(names)}" for names in GROUPS.values())
    assert list(choice([row]))[-1] == f"| this library | for ever | {wrong} | no | 1.50 | ~10,000 | 4.00 |"
    assert "two Regions: lost / doubled of 1,200 |" in next(choice([row]))
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(FAULTS)


def test_a_run_with_a_mistake_ends_with_1_and_leaves_the_page_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "page", lambda found: "the page")
    path = tmp_path / "comparison.md"
    with pytest.raises(SystemExit) as ended:
        compare.publish(cast(Found, SimpleNamespace(mistakes=["a row"])), path)
    assert (ended.value.code, path.exists()) == (1, False)
    compare.publish(cast(Found, SimpleNamespace(mistakes=[])), path)
    assert path.read_text() == "the page"
