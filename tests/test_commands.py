"""The commands of the checkout: how they end, what they need, and that each one that a page shows runs somewhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("args", "awaited", "others", "right"),
    [
        ("", 0, 0, True),
        ("", 5, 0, False),  # no test at all, and none was left out
        ("", 0, 5, False),
        ("", 1, 0, False),
        ("", 0, 1, False),
        ("-k fold", 5, 0, True),  # the half that has none
        ("-k awaited", 0, 5, True),
        ("-k nonsense", 5, 5, False),
        ("-k fold", 1, 0, False),
        ("-k fold", 5, 1, False),
        ("-k fold", 2, 5, False),
    ],
)
def test_make_test_chooses_some_of_either_half_and_fails_where_none_was_found(
    args: str, awaited: int, others: int, right: bool, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "python"
    for stamp in (tmp_path / ".made", *(tmp_path / name / ".made" for name in ("engine", "async"))):
        stamp.parent.mkdir(exist_ok=True)
        stamp.touch()
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n[ "$PYTHONPATH" = "{tmp_path}/async" ] && exit {awaited}\nexit {others}\n')
    program.chmod(0o755)
    command = ["make", "test", f"VENV={tmp_path}", *([f"ARGS={args}"] if args else [])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is right, done.stderr


@pytest.mark.parametrize("ci", ["", "true"])
def test_what_a_program_is_missing_for_fails_under_ci_and_is_listed_elsewhere(ci: str) -> None:
    environment = {**os.environ, "CI": ci, "LEDGER_ENGINE": "/nonexistent", "PATH": ""}
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/contract/test_engines.py")
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    *_, last = done.stdout.splitlines()
    listed = [line for line in done.stdout.splitlines() if line.startswith("NOT RUN: ")]
    if ci:
        assert (done.returncode, listed) == (1, [])
        assert "10 failed" in last
        assert "Run `make dev`" in done.stdout
        assert "Put on PATH: java, mvn" in done.stdout
    else:
        assert (done.returncode, "10 skipped" in last) == (0, True)
        engine, local = listed
        assert engine.startswith("NOT RUN: the embedded DynamoDB is not installed")
        assert local == "NOT RUN: DynamoDB Local needs a JDK and Maven. Put on PATH: java, mvn (5 tests)"
