"""Pages whose Python runs: all blocks of a page, in order, as one module; behind each print stands what it prints."""

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "docs" / "recipes"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def run(page: Path, *, module: str = "page", **given: Any) -> dict[str, Any]:
    """The names that the page's Python leaves. Every line printed must be claimed by a comment, and the reverse."""
    names: dict[str, Any] = {"__name__": module, **given}
    source = "\n\n".join(blocks(page, "python"))
    assert source, f"{page.name} has no Python"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(source, page.name, "exec", dont_inherit=True), names)
    claimed = re.findall(r"^ *print\(.*\)  # (.+)$", source, re.MULTILINE)
    assert printed.getvalue().splitlines() == claimed, f"{page.name} prints {printed.getvalue()!r}, not {claimed}"
    return names


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


class Mortal:
    """A ledger or a client in a process that dies before its `nth` call."""

    def __init__(self, inner: object, nth: int) -> None:
        self._inner, self._left = inner, nth

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if callable(found):
            self._left -= 1
            if not self._left:
                raise Dies
        return found
