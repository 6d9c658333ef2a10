"""The Python of a recipe passes a strict type checker as it stands."""

import subprocess
import sys
from pathlib import Path

from tests.docs.pages import RECIPES, ROOT, source

# they hand on a dict of arguments, or need what is not installed here
UNTYPED = {"fastapi", "llm-budgets", "stock", "terraform", "wallet"}


def test_recipes_pass_a_strict_type_checker(tmp_path: Path) -> None:
    for page in RECIPES.glob("*.md"):
        if page.stem not in UNTYPED and (code := source(page)):
            (tmp_path / f"{page.stem.replace('-', '_')}.py").write_text(code)
    files = sorted(map(str, tmp_path.iterdir()))
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", *files]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
