"""The embedded DynamoDB as a process. Tests that need it are skipped where it is not installed."""

import os
import signal
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from lab.engines.ministack import Engine, EngineDied, EngineMissing, find_executable

A, B = "eu-west-1", "us-east-1"


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


@pytest.mark.parametrize("environ", [{}, {"LEDGER_ENGINE": "/nowhere/ministack"}])
def test_a_missing_engine_says_make_dev(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(EngineMissing, match="make dev"):
        find_executable(environ, str(tmp_path))


def test_an_engine_that_ends_at_once_says_so_with_its_log(tmp_path: Path) -> None:
    broken = program(tmp_path / "ministack", "echo the port is taken; exit 3")
    with pytest.raises(EngineDied, match=r"exit code 3(.|\n)*the port is taken"):
        Engine(broken).start()


def test_each_region_has_its_own_tables_with_streams_of_new_and_old_images(
    engine: Engine, table_names: Iterator[str]
) -> None:
    name = next(table_names)
    for region in (A, B):
        engine.create_table(name, region)
    engine.client(A).put_item(TableName=name, Item={"pk": {"S": "p"}, "sk": {"S": "s"}})
    assert [engine.client(region).scan(TableName=name)["Count"] for region in (A, B)] == [1, 0]
    table = engine.client(A).describe_table(TableName=name)["Table"]
    assert table["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


@pytest.mark.parametrize("error", [None, KeyboardInterrupt], ids=["at its end", "by Ctrl-C"])
@pytest.mark.usefixtures("engine")  # which skips where it is not installed
def test_leaving_the_block_ends_the_process_and_removes_its_data(error: type[BaseException] | None) -> None:
    with pytest.raises(error) if error else nullcontext(), Engine() as engine:
        pid = engine.pid
        assert pid is not None
        directory = Path(f"/proc/{pid}/cwd").resolve()
        if error:
            raise error
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not directory.exists()
    assert engine.endpoint_url == ""


@pytest.mark.usefixtures("engine")
def test_an_engine_that_dies_in_the_block_says_so() -> None:
    def killed() -> None:
        with Engine() as engine:
            assert engine.pid is not None
            os.kill(engine.pid, signal.SIGKILL)
            os.waitid(os.P_PID, engine.pid, os.WEXITED | os.WNOWAIT)  # until it is dead; the engine reaps it

    with pytest.raises(EngineDied, match="not running"):
        killed()


def test_an_engine_that_does_not_run_makes_no_clients() -> None:
    with pytest.raises(EngineDied, match="never started"):
        Engine(Path("/nowhere")).client(A)
