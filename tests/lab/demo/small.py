"""The real demo, small: the command, the engine, all threads; few events, and shorter pauses than a user's run has."""

import os
import sys

import pytest
import typer
from typer.testing import CliRunner, Result

from lab import events
from lab.demo import __main__, delivery, run
from lab.demo.outcome import Outcome
from lab.engines.ministack import EngineMissing, find_executable

app = typer.Typer()
app.command()(__main__.main)


def small_demo(monkeypatch: pytest.MonkeyPatch) -> tuple[Result, Outcome | None]:
    """What the command printed and its exit code, and what the run left; skips where the engine is not installed."""
    try:
        find_executable(os.environ, sys.prefix)
    except EngineMissing as missing:
        pytest.skip(str(missing))
    left: list[Outcome] = []

    class Kept(run.Run):
        def run(self) -> Outcome:
            left.append(super().run())
            return left[0]

    monkeypatch.setattr(events, "WITNESSES", 8)
    for name, seconds in {"PAUSE_S": 3.0, "PARTITION_EVERY_S": 2.0, "PARTITION_S": 2.0}.items():
        monkeypatch.setattr(run, name, seconds)
    monkeypatch.setattr(delivery, "PLAY_MIN_S", 9.0)
    monkeypatch.setattr(__main__, "Run", Kept)
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["--limit", "120", "--seed", "3"])
    return result, left[0] if left else None
