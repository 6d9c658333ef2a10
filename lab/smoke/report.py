"""The report: what the tests of each assumption of docs/assumptions.md found on the table of a run.

Rule 1: A test's mark `shows` names its numbers, and the test belongs to the step that the page
names.
Rule 2: A test that fails makes its assumption `not held`, with its message. A test that was
skipped, could not begin or was not played makes it `unknown`, with the reason. Beside it stands
what the test reports (`seen`, and `costs`, of docs/costs.md).
"""

import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from lab.smoke.visit import ROOT, Visit

PAGE = ROOT / "docs" / "assumptions.md"
ROW = re.compile(r"^(\d+)\. (.+?) \(\[\w+\..+?\s(S\d|None)(?:: [a-z ]+)?$", re.M | re.S)
CHARACTERS = 300  # of a message


STEPS = {
    "S2": "tests/smoke/test_table.py",
    "S3": "tests/contract",
    "S5": "tests/smoke/test_roles.py",
    "S4": "tests/smoke/test_replication.py",
    "S6": "tests/smoke/test_service.py",
    "S7": "tests/smoke/test_loops.py",
}
"""The steps in their order, with their tests."""

OF_THE_TABLE = ("S2", "S3", "S5")


def claims() -> dict[int, tuple[str, str]]:
    """The page's claims by number, each with its step."""
    return {
        int(number): (" ".join(claim.split()), step)
        for number, claim, step in ROW.findall(PAGE.read_text())
    }


def results(visit: Visit, step: str) -> str:
    """The file with a step's results, in JUnit's form."""
    return str(visit.journal.with_name(f"{visit.id}-{step}.xml"))


def page(visit: Visit, left: Sequence[str], stopped: str) -> str:
    """The report, in Markdown."""
    where = (
        f"on an engine ({visit.engine}), which is not AWS"
        if visit.engine
        else f"in the account {visit.account}"
    )
    found = [*_seen(visit)]
    counts = ", ".join(
        f"{sum(each[2].startswith(way) for each in found)} {way}"
        for way in ("held", "not held", "unknown")
    )
    title = f"# {visit.name}, {where}, {' '.join(visit.regions)}"
    table = ["| | assumption | | what was seen | docs/costs.md |", "|---|---|---|---|---|"]
    table += [f"| {' | '.join(row)} |" for row in found]
    ends = [f"Stopped: {stopped}"] if stopped else []
    return "\n\n".join(
        [title, counts, "\n".join(table), *ends, f"Left: {'; '.join(left) or 'nothing'}\n"]
    )


def _seen(visit: Visit) -> Iterator[tuple[str, ...]]:
    cases = [case for step in STEPS for case in _cases(visit, step)]
    for number, (claim, step) in claims().items():
        mine = [case for case in cases if ("shows", str(number)) in _said(case)]
        said = dict(part for case in mine for part in _said(case))
        bad = {
            kind: " ".join(each.get("message", "").split())[:CHARACTERS]
            for kind in ("skipped", "error", "failure")
            for case in mine
            for each in case.iter(kind)
        }
        outcome = "not held" if "failure" in bad else "unknown" if bad or not mine else "held"
        what = next(reversed(bad.values()), said.get("seen", f"{len(mine)} of its tests"))
        if [*bad] == ["skipped"]:
            outcome = "unknown here"
        if not mine:
            what = "no step shows it" if step == "None" else f"{step} did not get to it"
        yield str(number), claim, outcome, what, said.get("costs", "")


def _said(case: ElementTree.Element) -> list[tuple[str, str]]:
    return [(each.get("name", ""), each.get("value", "")) for each in case.iter("property")]


def _cases(visit: Visit, step: str) -> list[ElementTree.Element]:
    try:
        return [*ElementTree.parse(results(visit, step)).iter("testcase")]
    except FileNotFoundError:
        return []
