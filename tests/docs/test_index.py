"""The recipes as a set: each is in the index, has the same parts, and code in our own style."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import RECIPES, ROOT, blocks

PAGES = {page.name for page in RECIPES.glob("*.md")} - {"README.md"}


def test_every_recipe_is_in_the_index() -> None:
    index = (RECIPES / "README.md").read_text()
    assert set(re.findall(r"^\| \[[^]]+\]\(([\w-]+\.md)\)", index, re.MULTILINE)) == PAGES


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_recipe_says_what_to_watch_out_for_and_what_it_costs(page: str) -> None:
    headings = re.findall(r"^## (.+)$", (RECIPES / page).read_text(), re.MULTILINE)
    assert headings[-2:] == ["Watch out", "Cost"]


@pytest.mark.parametrize("rules", [["check"], ["format", "--diff"]], ids=["lint", "format"])
def test_the_code_of_the_pages_is_in_our_style(tmp_path: Path, rules: list[str]) -> None:
    for page in [*RECIPES.glob("*.md"), ROOT / "docs" / "retries.md"]:
        (tmp_path / f"{page.stem}.py").write_text("\n\n".join(blocks(page, "python")))
    ruff = [sys.executable, "-m", "ruff", *rules, "--no-cache", "--config", str(ROOT / "pyproject.toml")]
    found = subprocess.run([*ruff, str(tmp_path)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
