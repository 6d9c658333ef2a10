"""No page, docstring, message or template has a turn that makes a reader stop; beside each
stands what to write.

Rule 1: people stumbled over each of these turns. Add the next one when somebody reports it.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

PACKAGES = (
    "exact_counter",
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
        *(path for path in (ROOT / "docs").glob("*.txt") if path.name != "bench.txt"),
    ],
    "templates": [
        ROOT / "serverless.yml",
        *(ROOT / "infra").rglob("*.yml"),
        *(ROOT / "infra").rglob("*.json"),
    ],
    "programs": [
        path
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if "tests" not in path.relative_to(ROOT).parts
    ],
}
NEWLINE = "\n"
PAIR = re.compile(r"(?<![\w/.<#-])[a-z]{2,}/[a-z]{2,}\b(?![\w/(-]|\.\w)")
NAMES = {"text/html", "aws/sns", "aws/dynamodb"}
"""Pairs that are names: a media type, keys of AWS's. So is each path that exists."""
BEGIN = r"(^|[.;:#|*-] )"
BANNED = {
    r"(?i)(?<![`'\".])\btold\b(?![`:])": "report, raise, log, publish or count: say who does",
    r"(?i)\breckon": "count, compute",
    r"(?i)\bspar(ed|es)\b": "skipped, coalesced, saved",
    r"(?i)\bbur(y|ies|ied)\b": "move to the dead-letter queue",
    r"(?i)\bbefall": "happen to",
    r"(?i)\bow(e|es|ed)\b": "lack, be below 0",
    r"(?i)\bmet\b": "found, had, was refused by",
    r"(?i)\bwhoever\b": "say who: the process, the caller, you, anybody who",
    r"(?i)\b(is|are|be|one|ones|those) of now\b": "current, as it is now",
    r"(?i)\bin silence\b": "silently",
    r"(?i)\bbegins? so\b(?!,? that)": "begin with it",
    r"(?i)\btrue sums?\b": "counts each change that it sees exactly once",
    r"(?i)\bfor you if\b": "say what the page does",
    r"(?i)\bits? events give\b": "recounted from all its changes",
    BEGIN + r"([A-Z][a-z]+ed|Told|Held|Kept|Sent|Lost|Left|Written) (is|are|was|were)\b": (
        "begin with who does it"
    ),
    BEGIN + r"The same (call )?again[.,;]": "call again",
}


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a file, each with the number of its first line: of a program its docstrings and
    other strings. A single word is a name there: of a field, an attribute, a metric."""
    text = path.read_text("utf-8")
    if path.suffix != ".py":
        yield 1, text
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def plain(text: str) -> str:
    """A text without code, links' targets and addresses: what is left is read as words. Each line
    stays where it was."""
    for code in (r"```.*?```", r"`[^`]*`", r"\]\([^)]*\)", r"https?://\S+"):
        text = re.sub(code, lambda found: NEWLINE * found[0].count(NEWLINE), text, flags=re.DOTALL)
    return text


def turns(path: Path) -> Iterator[tuple[int, str, str]]:
    """The banned turns of a file: the line, the turn, and what to write."""
    for first, text in prose(path):
        for banned, better in BANNED.items():
            for turn in re.finditer(banned.replace(" ", r"\s+"), text, re.MULTILINE):
                yield first + text[: turn.start()].count(NEWLINE), turn[0].strip(), better
        words = plain(text)
        for pair in PAIR.finditer(words):
            if not (ROOT / pair[0]).exists() and pair[0] not in NAMES:
                yield first + words[: pair.start()].count(NEWLINE), pair[0], "a and b, or a or b"


@pytest.mark.parametrize("paths", TEXTS.values(), ids=TEXTS)
def test_no_text_has_a_banned_turn(paths: list[Path]) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {turn!r}: {better}"
        for path in sorted(paths)
        for line, turn, better in turns(path)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("An event is reckoned lost/doubled.", ["reckon", "lost/doubled"]),
        ("A refusal that was told is of now.", ["told", "is of now"]),
        ("A call met another one: whoever\nis short ends it.", ["met", "whoever"]),
        ("Names that begin so stop in\nsilence.", ["in\nsilence", "begin so"]),
        ("For you if you want a true sum.", ["true sum", "For you if"]),
        ("`lost/doubled`, docs/recipes and [a page](in/there.md): `told` or read.", []),
    ],
)
def test_a_turn_is_found_in_words_and_not_in_code(
    text: str, found: list[str], tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"A line before.\n{text}\n")
    assert [turn for _, turn, _ in turns(page)] == found
    assert all(line >= 2 for line, _, _ in turns(page))
