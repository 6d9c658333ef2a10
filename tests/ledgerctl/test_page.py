"""The sessions in docs/ledgerctl.md and docs/first-hour.md are what the commands print.

`python -m tests.ledgerctl.test_page` writes the pages anew.

Rule 1: A block `console` is a session, and each line that begins with `$ ledgerctl` a command of it.
Rule 2: A block with `title="NAME"` is a file that is there.
Rule 3: The commands run in the order of the page, on a new engine. A page that does not say `ledgerctl init` finds the
table there, as `make engine` leaves it.
Rule 4: A hold has another id each time: where one stood on the page, later commands have the new one.
"""

import contextlib
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lab.engines.ministack import Engine
from ledgerctl.__main__ import app
from ledgerctl.call import Surroundings
from tests.docs.pages import blocks, run
from tests.ledgerctl.support import ONCE, signed_in

PAGES = [Path(__file__).parents[2] / "docs" / name for name in ("ledgerctl.md", "first-hour.md")]
LEDGERCTL, FIRST_HOUR = PAGES
SESSION = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(\$ .*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
FILE = re.compile(r"^```\w+ title=\"(\S+)\"\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ENVIRON = re.compile(r"^export (.*)$", re.MULTILINE)
HOLD = r"\b[0-7][0-9A-Z]{25}\.[a-z0-9-]+\.\d+\.-?\d+"
CHANGES = (
    (HOLD, "HOLD"),
    (r"the hold [0-9A-Z]{26}", "the hold TOKEN"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{3})?Z", "TIME"),
    (r"\b[0-9a-f]{20}\b", "KEY"),
    (r"\b\d+ (y|d|h|min|s|ms)\b", "AGE"),
    (r" +", " "),
)


def played(page: str, engine: Engine) -> str:
    """The page, with what its commands print on a new table."""
    environ = dict(pair.split("=", 1) for line in ENVIRON.findall(page) for pair in shlex.split(line))
    world = Surroundings(
        environ=environ | {"LEDGER_ENDPOINT_URL": engine.endpoint_url, "COLUMNS": "80"},
        session=lambda _: signed_in(),
        config=ONCE,
        pause=lambda _: None,
    )

    holds: dict[str, str] = {}

    def play(session: re.Match[str]) -> str:
        printed = ""
        for line, before in COMMAND.findall(session[1]):
            command = re.sub(HOLD, lambda held: holds.get(held[0], held[0]), line)
            said = _run(world, command, engine.endpoint_url)
            holds.update(zip(re.findall(HOLD, before), re.findall(HOLD, said), strict=False))
            printed += f"{command}\n{said}"
        return f"```console\n{printed}```"

    if "$ ledgerctl init" not in page:
        _run(world, "$ ledgerctl init", engine.endpoint_url)
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
        for name, text in FILE.findall(page):
            Path(name).write_text(text)
        return SESSION.sub(play, page)


def _run(world: Surroundings, line: str, endpoint_url: str) -> str:
    arguments = shlex.split(line.removeprefix("$ ledgerctl "))
    result = CliRunner().invoke(app, arguments, obj=world, catch_exceptions=False, prog_name="ledgerctl")
    text = result.output.replace(endpoint_url, "http://127.0.0.1:8000")
    text = "".join(f"{each.rstrip()}\n" for each in text.splitlines())
    return text + (f"[exit code {result.exit_code}]\n" if result.exit_code else "")


def lasting(page: str) -> str:
    """The page without what differs from run to run."""
    for pattern, word in CHANGES:
        page = re.sub(pattern, word, page)
    return page


def check_sessions(page: Path, engine: Engine) -> None:
    text = page.read_text()
    assert lasting(played(text, engine)) == lasting(text), "`python -m tests.ledgerctl.test_page` writes it anew"


def test_the_sessions_of_the_page_are_what_the_commands_print_and_every_command_has_a_heading(engine: Engine) -> None:
    check_sessions(LEDGERCTL, engine)
    headings = " ".join(re.findall(r"^### (.*)$", LEDGERCTL.read_text(), re.MULTILINE))
    assert {*re.findall(r"[a-z]+", headings)} == {command.name for command in app.registered_commands}


def test_the_sessions_and_the_python_of_the_first_hour_run(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    check_sessions(FIRST_HOUR, engine)
    for name, value in re.findall(r"^export (\w+)=(\S+)$", FIRST_HOUR.read_text(), re.MULTILINE):
        monkeypatch.setenv(name, engine.endpoint_url if name == "LEDGER_ENDPOINT_URL" else value)
    run(FIRST_HOUR)


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


if __name__ == "__main__":
    for page in PAGES:
        with Engine() as running:
            page.write_text(played(page.read_text(), running))
