"""The embedded DynamoDB as a process. Tests that need it are skipped where it is not installed."""

import os
import signal
from pathlib import Path

import pytest

from lab.engines.ministack import Engine, EngineDied, EngineMissing, find_executable


def program(path: Path, script: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_the_environment_comes_first_then_what_is_beside_this_python_then_the_path(tmp_path: Path) -> None:
    named, on_path = program(tmp_path / "named"), program(tmp_path / "bin" / "ministack")
    path = {"PATH": str(tmp_path / "bin")}
    assert find_executable(path, str(tmp_path)) == on_path
    beside = program(tmp_path / "engine" / "bin" / "ministack")
    assert find_executable(path, str(tmp_path)) == beside
    assert find_executable({"LEDGER_ENGINE": str(named)}, str(tmp_path)) == named


def test_a_missing_engine_says_make_dev(tmp_path: Path) -> None:
    for environ in ({}, {"LEDGER_ENGINE": "/nowhere/ministack"}):
        with pytest.raises(EngineMissing, match="make dev"):
            find_executable(environ, str(tmp_path))


def test_an_engine_that_ends_at_once_or_never_started_says_so(tmp_path: Path) -> None:
    broken = program(tmp_path / "ministack", "echo the port is taken; exit 3")
    with pytest.raises(EngineDied, match=r"exit code 3(.|\n)*the port is taken"):
        Engine(broken).start()
    with pytest.raises(EngineDied, match="never started"):
        Engine(Path("/nowhere")).client("eu-west-1")


@pytest.mark.usefixtures("engine")  # which skips where it is not installed
def test_an_engine_that_dies_in_the_block_says_so_and_ctrl_c_ends_it_with_its_data() -> None:
    with pytest.raises(EngineDied, match="not running"), Engine() as engine:  # noqa: PT012
        assert engine.pid is not None
        os.kill(engine.pid, signal.SIGKILL)
        os.waitid(os.P_PID, engine.pid, os.WEXITED | os.WNOWAIT)  # until it is dead; the engine reaps it
    with pytest.raises(KeyboardInterrupt), Engine() as engine:  # noqa: PT012
        pid = engine.pid
        directory = Path(f"/proc/{pid}/cwd").resolve()
        raise KeyboardInterrupt
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not directory.exists()
