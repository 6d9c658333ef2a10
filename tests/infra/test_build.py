"""The zip that all functions share."""

import re
import zipfile
from pathlib import Path

import pytest

from infra import build

SERVICE = re.compile(r"^([a-z0-9-]+)==", re.MULTILINE)


def _files(directory: Path) -> list[tuple[str, Path]]:
    for name, text in (("b.py", "b = 1\n"), ("a.py", "a = 1\n")):
        (directory / name).write_text(text)
    return [(name, directory / name) for name in ("b.py", "a.py")]


def test_the_same_files_make_the_same_bytes(tmp_path: Path) -> None:
    files = _files(tmp_path)
    build.write(tmp_path / "one.zip", files)
    for _, file in files:
        file.touch()
        file.chmod(0o600)
    build.write(tmp_path / "two.zip", reversed(files))
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    entries = zipfile.ZipFile(tmp_path / "one.zip").infolist()
    assert [(entry.filename, entry.date_time[0]) for entry in entries] == [("a.py", 1980), ("b.py", 1980)]


@pytest.mark.parametrize(
    ("path", "skipped"),
    [
        ("botocore/data/dynamodb/2012-08-10/service-2.json.gz", False),
        ("botocore/data/sqs/2012-11-05/service-2.json.gz", False),
        ("botocore/data/ec2/2016-11-15/service-2.json.gz", True),
        ("botocore/data/endpoints.json", False),
        ("botocore/client.py", False),
        ("boto3/data/ec2/2016-11-15/resources-1.json", True),
        ("pydantic_core/_pydantic_core.cpython-313-aarch64-linux-gnu.so", False),
        ("pydantic/main.pyi", True),
        ("six-1.17.0.dist-info/RECORD", True),
        ("six-1.17.0.dist-info/licenses/LICENSE", False),
        ("bin/jp.py", True),
    ],
)
def test_only_what_functions_need_is_packed(path: str, skipped: bool) -> None:
    assert build.is_skipped(Path(path)) is skipped


def test_every_dependency_is_locked_by_hash_for_every_machine_alike() -> None:
    lock = build.LOCK.read_text()
    pinned = SERVICE.findall(lock)
    assert {"boto3", "aws-lambda-powertools", "pydantic"} <= set(pinned)
    assert lock.count("--hash=sha256:") >= len(pinned)
    assert ";" not in lock  # pip would judge a marker by the machine that builds, not by Lambda


def test_what_is_deployed_is_what_is_tested() -> None:
    tested = (build.ROOT / "requirements.lock").read_text()
    for line in re.findall(r"^[a-z0-9-]+==\S+", build.LOCK.read_text(), re.MULTILINE):
        assert f"{line} " in tested, f"{line} is deployed, and requirements.lock has another version"
