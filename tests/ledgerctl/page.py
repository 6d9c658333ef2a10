"""The sessions in PAGES, run again: `python -m tests.ledgerctl.page` writes the pages anew.

Rule 1: A block `console` is a session, and each line that begins with `$ ledgerctl` a command of
it.
Rule 2: A block with `title="NAME"` is a file that is there.
Rule 3: The commands run in the order of the page, on a new engine. A page that does not say
`ledgerctl init` finds the table there, as `make engine` leaves it.
Rule 4: A page that says when its sessions ran has the clock of that day, so that its periods are
open.
Rule 5: A hold has another id each time: where one stood on the page, later commands have the new
one.
"""

import argparse
import contextlib
import re
import shlex
import tempfile
from datetime import datetime
from pathlib import Path

from typer.testing import CliRunner

from lab.engines.ministack import Engine
from ledger.core.checks import to_ms
from ledger.core.clocks import Clock, wall_clock
from ledgerctl.__main__ import app
from ledgerctl.surroundings import Surroundings
from tests.ledgerctl.support import ONCE, signed_in

PAGES = [Path(__file__).parents[2] / "docs" / name for name in ("ledgerctl.txt", "first-hour.md")]
SESSION = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(\$ .*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
FILE = re.compile(r"^```\w+ title=\"(\S+)\"\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RAN_ON = re.compile(r"^The sessions on this page ran .* on (\d+ \w+ \d{4})", re.MULTILINE)
ENVIRON = re.compile(r"^export ((?:[^'\n]|'[^']*')*)$", re.MULTILINE)
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
    world = Surroundings(
        environ=exported(page) | {"LEDGER_ENDPOINT_URL": engine.endpoint_url, "COLUMNS": "80"},
        session=lambda _: signed_in(),
        config=ONCE,
        pause=lambda _: None,
        clock=_clock_of(page),
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


def exported(page: str) -> dict[str, str]:
    """The environment that the page sets, all of it from its first command on."""
    return dict(pair.split("=", 1) for line in ENVIRON.findall(page) for pair in shlex.split(line))


def _clock_of(page: str) -> Clock:
    day = RAN_ON.search(page)
    noon_ms = day and to_ms(datetime.strptime(f"{day[1]} 12 +0000", "%d %B %Y %H %z"))
    return wall_clock if noon_ms is None else lambda: noon_ms


def _run(world: Surroundings, line: str, endpoint_url: str) -> str:
    arguments = shlex.split(line.removeprefix("$ ledgerctl "))
    result = CliRunner().invoke(
        app, arguments, obj=world, catch_exceptions=False, prog_name="ledgerctl"
    )
    text = result.output.replace(endpoint_url, "http://127.0.0.1:8000")
    text = "".join(f"{each.rstrip()}\n" for each in text.splitlines())
    return text + (f"[exit code {result.exit_code}]\n" if result.exit_code else "")


def lasting(page: str) -> str:
    """The page without what differs from run to run."""
    for pattern, word in CHANGES:
        page = re.sub(pattern, word, page)
    return page


if __name__ == "__main__":
    argparse.ArgumentParser(description="Writes the pages anew.").parse_args()
    for page in PAGES:
        with Engine() as running:
            page.write_text(played(page.read_text(), running))
