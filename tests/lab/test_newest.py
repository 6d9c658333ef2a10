"""`make newest` asks pip for the ranges of pyproject.toml, and fails as its tests fail."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from lab import newest
from lab.newest import INTEGRATION, ROOT, TOOLS, ranges


def test_asked_for_are_the_ranges_and_nothing_of_the_checkout() -> None:
    asked = [*ranges(ROOT, "service", "cli", "fast", "dev"), *ranges(ROOT / INTEGRATION, "tests")]
    assert {"boto3>=1.35", "typer>=0.18", "pydantic>=2.11", "litellm>=1.106", "litellm[proxy]"} <= {
        *asked
    }
    assert not [each for each in asked if "exact-counter" in each or "==" in each]
    dev = [*ranges(ROOT, "dev")]
    assert [tool for tool in TOOLS if not any(each.startswith(tool) for each in dev)] == []


@pytest.mark.parametrize("code", [0, 1, 2, 5])
@pytest.mark.parametrize("tests", [["tests/reader"], [INTEGRATION], None])
def test_it_fails_where_a_test_fails(
    code: int, tests: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = list[tuple[str, str]]()

    def run(command: list[str], cwd: Path, check: bool) -> SimpleNamespace:
        ran.append((command[0], cwd.name))
        return SimpleNamespace(returncode=code)

    monkeypatch.setattr(
        newest, "environment", lambda python, name, asked: f"{name} with {len([*asked]) > 3}"
    )
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(typer.Exit) as ended:
        newest.main(tests)
    assert ended.value.exit_code == (code > 0)
    both = [("counter with True", ROOT.name), ("litellm with True", "litellm")]
    assert ran == (both if tests is None else both[tests == [INTEGRATION] :][:1])
