"""The zip that all functions share."""

import re
import zipfile
from pathlib import Path

from infra import build

SERVICE = re.compile(r"^([a-z0-9-]+)==", re.MULTILINE)


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
    assert [(entry.filename, entry.date_time[0]) for entry in entries] == [("a.py", 1980), ("b.py", 1980)]


PACKED = (
    *("botocore/data/dynamodb/2012-08-10/service-2.json.gz", "botocore/data/sqs/2012-11-05/service-2.json.gz"),
    *("botocore/data/endpoints.json", "botocore/client.py", "six-1.17.0.dist-info/licenses/LICENSE"),
    "pydantic_core/_pydantic_core.cpython-313-aarch64-linux-gnu.so",
)
SKIPPED = (
    *("botocore/data/ec2/2016-11-15/service-2.json.gz", "boto3/data/ec2/2016-11-15/resources-1.json", "bin/jp.py"),
    *("pydantic/main.pyi", "six-1.17.0.dist-info/RECORD"),
)


def test_only_what_functions_need_is_packed() -> None:
    assert [path for path in (*PACKED, *SKIPPED) if build.is_skipped(Path(path))] == [*SKIPPED]


def test_every_dependency_is_locked_by_hash_for_every_machine_alike_and_is_what_is_tested() -> None:
    lock = build.LOCK.read_text()
    pinned = SERVICE.findall(lock)
    assert {"boto3", "aws-lambda-powertools", "pydantic"} <= set(pinned)
    assert lock.count("--hash=sha256:") >= len(pinned)
    assert ";" not in lock  # pip would judge a marker by the machine that builds, not by Lambda
    tested = (build.ROOT / "requirements.lock").read_text()
    for line in re.findall(r"^[a-z0-9-]+==\S+", build.LOCK.read_text(), re.MULTILINE):
        assert f"{line} " in tested, f"{line} is deployed, and requirements.lock has another version"
