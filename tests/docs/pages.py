"""Pages whose Python runs: all blocks of a page, in order, as one module; behind each print stands what it prints."""

from __future__ import annotations

import contextlib
import io
import re
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
    assert printed.getvalue().splitlines() == re.findall(r"^print\(.*\)  # (.+)$", source, re.MULTILINE)
    return names
