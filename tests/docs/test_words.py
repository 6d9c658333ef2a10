"""No page, docstring, message or template has a turn that makes a reader stop; beside each
stands what to write.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

PACKAGES = (
    "ledger",
    "reader",
    "compactor",
    "simulator",
    "service",
    "ledgerctl",
    "infra",
    "integrations",
)
TEXTS = {
    "pages": [
        *ROOT.glob("*.md"),
        *(
            path
            for room in ("docs", "integrations", "tests")
            for path in (ROOT / room).rglob("*.md")
        ),
    ],
    "templates": [
        ROOT / "serverless.yml",
        *(ROOT / "infra").rglob("*.yml"),
        *(ROOT / "infra").rglob("*.json"),
    ],
    "programs": [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")],
}
NEWLINE = "\n"
BEGIN = r"(^|[.;:#|*-] )"
BANNED = {
    r"(?i)\b(is|are|was|were|be|been|being) told\b": (
        "report, raise, log, publish or count: say who does"
    ),
    r"(?i)\breckon": "count, compute",
    r"(?i)\bspar(ed|es)\b": "skipped, coalesced, saved",
    r"(?i)\bbur(y|ies|ied)\b": "move to the dead-letter queue",
    r"(?i)\bbefall": "happen to",
    r"(?i)\bow(e|es|ed)\b": "lack, be below 0",
    BEGIN + r"([A-Z][a-z]+ed|Told|Held|Kept|Sent|Lost|Left|Written) (is|are|was|were)\b": (
        "begin with who does it"
    ),
    BEGIN + r"The same (call )?again[.,;]": "call again",
}


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a file, each with the number of its first line: of a program its docstrings and
    other strings. A
    single word is a name there: of a field, an attribute, a metric."""
    text = path.read_text("utf-8")
    if path.suffix != ".py":
        yield 1, text
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


@pytest.mark.parametrize("paths", TEXTS.values(), ids=TEXTS)
def test_no_text_has_a_banned_turn(paths: list[Path]) -> None:
    found = [
        (
            f"{path.relative_to(ROOT)}:{first + text[: turn.start()].count(NEWLINE)}: "
            f"{turn[0].strip()!r}: {better}"
        )
        for path in sorted(paths)
        for first, text in prose(path)
        for banned, better in BANNED.items()
        for turn in re.finditer(banned.replace(" ", r"\s+"), text, re.MULTILINE)
    ]
    assert not found, "\n".join(found)
