"""The Python of a page passes a strict type checker as a user's file, as it stands."""

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import DOCS, ROOT, source


def errors_of(code: dict[str, str], folder: Path) -> list[str]:
    """What the type checker says of modules by their name."""
    files = [folder / f"{name}.py" for name in code]
    for file, text in zip(files, code.values(), strict=True):
        file.write_text(text)
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", *map(str, files)]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode in (0, 1), checked.stdout + checked.stderr
    return [line for line in checked.stdout.splitlines() if ": error: " in line]


def test_the_python_of_every_page_passes_a_strict_type_checker(tmp_path: Path) -> None:
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    names = {page: "_".join(page.relative_to(ROOT).with_suffix("").parts) for page in pages}
    code = {names[page].replace("-", "_"): text for page in pages if (text := source(page))}
    assert len(code) > 20
    assert errors_of(code, tmp_path) == []


def test_mistakes_in_pages_are_found(tmp_path: Path) -> None:
    mistakes = {
        "arg-type": 'Ledger(settings).add("a", "1")',
        "attr-defined": 'Ledger(settings).add("a", 1).outcom',
        "no-untyped-def": "def untyped(counter_ledger): ...",
    }
    head = "from exact_counter import Ledger, Settings\n\nsettings = Settings.from_env()\n"
    pages = {f"page_{number}": head + wrong for number, wrong in enumerate(mistakes.values())}
    found = "".join(errors_of(pages, tmp_path))
    assert sorted(re.findall(r"\[([\w-]+)\]", found)) == sorted(mistakes)
