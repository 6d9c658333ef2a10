"""Pages whose Python runs: all blocks of a page, in order, as one module; behind each print stands
what it prints.

A file `page.py` beside `page.md` is the first part of that module.
"""

import contextlib
import io
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RECIPES = DOCS / "recipes"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def source(page: Path) -> str:
    """The page's Python, with the file beside it."""
    beside = page.with_suffix(".py")
    return "\n\n".join(
        [*([beside.read_text()] if beside.exists() else []), *blocks(page, "python")]
    )


def run(page: Path) -> dict[str, Any]:
    """The names that the page's Python leaves.

    Every line printed must be claimed by a comment, and the reverse.
    """
    names: dict[str, Any] = {"__name__": "page"}
    code = source(page)
    assert code, f"{page.name} has no Python"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, page.name, "exec", dont_inherit=True), names)
    claimed = re.findall(r"^ *print\(.*\)  # (.+)$", code, re.MULTILINE)
    assert printed.getvalue().splitlines() == claimed, (
        f"{page.name} prints {printed.getvalue()!r}, not {claimed}"
    )
    return names


def rows(page: Path, heading: str) -> Iterator[list[str]]:
    """The cells of the table whose header begins with `heading`, row by row."""
    _, _, below = page.read_text().partition(f"\n| {heading} |")
    assert below, f"no table {heading!r} in {page.name}"
    for line in below.splitlines()[2:]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


@contextlib.contextmanager
def instead(names: dict[str, Any], **others: object) -> Iterator[None]:
    """A page's functions with another ledger or client than the page made."""
    own = {name: names[name] for name in others}
    names |= others
    try:
        yield
    finally:
        names |= own


class Dies(Exception):
    """The process ends here."""


class Before:
    """A ledger or a client before each call of which something happens."""

    def __init__(self, inner: object, happens: Callable[[], None]) -> None:
        self._inner, self._happens = inner, happens

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if callable(found):
            self._happens()
        return found


def mortal(inner: object, nth: int) -> Before:
    """In a process that dies before its `nth` call."""
    calls = itertools.count(1)

    def lives() -> None:
        if next(calls) == nth:
            raise Dies

    return Before(inner, lives)
