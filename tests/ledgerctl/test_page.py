"""The sessions in docs/ledgerctl.md and docs/first-hour.md are what the commands print."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab.engines.ministack import Engine
from ledgerctl.__main__ import app
from tests.docs.pages import blocks, run
from tests.ledgerctl.page import PAGES, lasting, played

LEDGERCTL, FIRST_HOUR = PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_sessions_on_a_page_are_what_the_commands_print(engine: Engine, page: Path) -> None:
    text = page.read_text()
    assert lasting(played(text, engine)) == lasting(text), "`python -m tests.ledgerctl.page` writes it anew"


@pytest.mark.usefixtures("engine")  # it is installed
def test_the_engine_of_the_first_hour_prints_the_lines_of_the_page() -> None:
    (shown,) = blocks(FIRST_HOUR, "text")
    with subprocess.Popen([sys.executable, "-m", "lab.engines"], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        lines = [started.stdout.readline() for _ in shown.splitlines()]
        started.terminate()
    printed = re.sub(r":\d+|'/\S+", "", "".join(lines))
    assert printed == re.sub(r":\d+|'/\S+", "", shown)
    assert started.returncode == 128 + 15


def test_the_python_of_the_first_hour_runs(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    text = FIRST_HOUR.read_text()
    played(text, engine)
    for name, value in re.findall(r"^export (\w+)=(\S+)$", text, re.MULTILINE):
        monkeypatch.setenv(name, engine.endpoint_url if name == "LEDGER_ENDPOINT_URL" else value)
    run(FIRST_HOUR)


def test_every_command_that_ends_by_itself_has_a_session_on_the_page() -> None:
    shown = set(re.findall(r"^\$ ledgerctl ([a-z]+)", LEDGERCTL.read_text(), re.MULTILINE))
    assert shown == {command.name for command in app.registered_commands}
