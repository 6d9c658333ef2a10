"""Every program of the checkout answers --help, and refuses what it does not know before it does anything."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("infra", "lab", "ledgerctl", "service", "tests")
MAIN = 'if __name__ == "__main__":'
PROGRAMS = sorted(
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__main__")
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if f"\n{MAIN}" in path.read_text()
)


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", program, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_programs_are_found() -> None:
    assert {"infra.deploy", "lab.bench", "lab.compare", "lab.histories.explore", "lab.torture"} <= set(PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_says_how_it_is_called_and_refuses_what_it_does_not_know(program: str) -> None:
    said = run(program, "--help")
    assert (said.returncode, said.stderr) == (0, "")
    assert "usage:" in said.stdout.lower()
    refused = run(program, "--nonsense")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "usage:" in refused.stderr.lower() or "--help" in refused.stderr
