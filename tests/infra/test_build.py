"""The zip that all functions share."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from infra import build


def test_the_same_files_make_the_same_bytes(tmp_path: Path) -> None:
    files = [(name, tmp_path / name) for name in ("b.py", "a.py")]
    for name, file in files:
        file.write_text(f"{name[0]} = 1\n")
    build.write(tmp_path / "one.zip", files)
    for _, file in files:
        file.touch()
        file.chmod(0o600)
    build.write(tmp_path / "two.zip", reversed(files))
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    entries = zipfile.ZipFile(tmp_path / "one.zip").infolist()
    assert [(entry.filename, entry.date_time[0]) for entry in entries] == [
        ("a.py", 1980),
        ("b.py", 1980),
    ]


def test_bytecode_is_the_same_wherever_it_was_made(
    tmp_path: Path,
) -> None:
    module = tmp_path / "module.py"
    module.write_text("def fails():\n    raise ValueError\n")
    files, python = [("package/module.py", module)], build.python_of("here")
    assert python is not None
    zips = [tmp_path / name for name in ("one.zip", "two.zip")]
    for path in zips:
        (tmp_path / path.stem).mkdir()
        build.write(path, [*files, *build.bytecode(files, tmp_path / path.stem, python)])
    assert zips[0].read_bytes() == zips[1].read_bytes()
    zipfile.ZipFile(zips[0]).extractall(tmp_path / "task")
    os.utime(tmp_path / "task/package/module.py")  # Lambda's times are not those of the build
    code = "import package.module as it; print(it.__file__ == it.fails.__code__.co_filename)"
    command = [python, "-v", "-B", "-c", code]
    ran = subprocess.run(command, cwd=tmp_path / "task", capture_output=True, text=True, check=True)
    assert ran.stdout == "True\n"
    assert f"matches {tmp_path / 'task/package/module.py'}" in ran.stderr


def test_bytecode_is_of_the_version_that_runs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lambda_runs = next(line for line in build.TARGETS["lambda"] if re.fullmatch(r"3\.\d+", line))
    assert build.PYTHONS["lambda"][0] == lambda_runs.replace(".", " ")
    assert f"runtime: python{lambda_runs}" in (build.ROOT / "serverless.yml").read_text()
    monkeypatch.setitem(build.PYTHONS, "lambda", ("2 7", ["no-such-python", sys.executable]))
    assert build.python_of("lambda") is None


def test_only_what_functions_need_is_packed() -> None:
    model, other = (
        "botocore/data/sqs/2012-11-05/service-2.json.gz",
        "botocore/data/ec2/2016-11-15/service-2.json.gz",
    )
    packed = (
        model,
        "botocore/data/endpoints.json",
        "six-1.17.0.dist-info/licenses/LICENSE",
        "pydantic_core/core.so",
    )
    skipped = (
        other,
        "boto3/data/ec2/resources-1.json",
        "bin/jp.py",
        "pydantic/main.pyi",
        "six-1.17.0.dist-info/RECORD",
    )
    assert [path for path in (*packed, *skipped) if build.is_skipped(Path(path))] == [*skipped]


def test_a_dependency_is_locked_by_hash_for_every_machine() -> None:
    lock, tested = build.LOCK.read_text(), (build.ROOT / "requirements" / "dev.lock").read_text()
    pinned = re.findall(r"^[a-z0-9-]+==\S+", lock, re.MULTILINE)
    assert {"boto3", "aws-lambda-powertools", "pydantic"} <= {
        line.partition("==")[0] for line in pinned
    }
    assert lock.count("--hash=sha256:") >= len(pinned)
    assert ";" not in lock  # pip would judge a marker by the machine that builds, not by Lambda
    assert [line for line in pinned if f"{line} " not in tested] == []
