"""The sessions in docs/ledgerctl.txt and docs/first-hour.md are what the commands print."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lab.engines.ministack import Engine
from ledgerctl.__main__ import app
from tests.docs.pages import blocks, run
from tests.ledgerctl.page import PAGES, exported, lasting, played

LEDGERCTL, FIRST_HOUR = PAGES


def check_sessions(page: Path, engine: Engine) -> None:
    text = page.read_text()
    assert lasting(played(text, engine)) == lasting(text), (
        "`python -m tests.ledgerctl.page` writes it anew"
    )


def test_the_pages_sessions_are_what_the_commands_print(
    engine: Engine,
) -> None:
    check_sessions(LEDGERCTL, engine)
    headings = " ".join(re.findall(r"^### (.*)$", LEDGERCTL.with_suffix(".md").read_text(), re.M))
    assert {*re.findall(r"[a-z]+", headings)} == {
        command.name for command in app.registered_commands
    }


def test_the_sessions_and_the_python_of_the_first_hour_run(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_sessions(FIRST_HOUR, engine)
    for name, value in exported(FIRST_HOUR.read_text()).items():
        monkeypatch.setenv(name, engine.endpoint_url if name == "LEDGER_ENDPOINT_URL" else value)
    run(FIRST_HOUR)


@pytest.mark.usefixtures("engine")  # it is installed
def test_the_first_hours_engine_prints_the_pages_lines(tmp_path: Path) -> None:
    (shown,) = blocks(FIRST_HOUR, "text")
    with subprocess.Popen(
        [sys.executable, "-m", "lab.engines"], stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        lines = [started.stdout.readline() for _ in shown.splitlines()]
        started.terminate()
    printed = re.sub(r":\d+|'/\S+", "", "".join(lines))
    assert printed == re.sub(r":\d+|'/\S+", "", shown)
    assert started.returncode == 128 + 15
    (command,) = re.findall("alias ledgerctl='(.*)'", lines[-1])
    (tmp_path / "ledger.py").write_text("raise SystemExit('a module of your own')")
    said = subprocess.run([*shlex.split(command), "--version"], cwd=tmp_path, check=False)
    assert said.returncode == 0
