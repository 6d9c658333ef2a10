"""The zip that all functions share."""

import re
from pathlib import Path

from infra import build


def test_only_what_functions_need_is_packed() -> None:
    for folder, names, stays in (
        ("botocore/data", ["sqs", "ec2", "endpoints.json"], {"ec2"}),
        ("boto3", ["data", "examples", "session.py"], {"data", "examples"}),
        (".", ["bin", "pydantic", "__pycache__", "typing.pyi", "a.py"], {"bin", "__pycache__", "typing.pyi"}),
    ):
        assert build.skipped(Path(folder), names) & {*names} == stays


def test_every_dependency_is_locked_by_hash_for_every_machine_alike_and_is_what_is_tested() -> None:
    lock, tested = build.LOCK.read_text(), (build.ROOT / "requirements.lock").read_text()
    pinned = re.findall(r"^[a-z0-9-]+==\S+", lock, re.MULTILINE)
    assert {"boto3", "aws-lambda-powertools", "pydantic"} <= {line.partition("==")[0] for line in pinned}
    assert lock.count("--hash=sha256:") >= len(pinned)
    assert ";" not in lock  # pip would judge a marker by the machine that builds, not by Lambda
    assert [line for line in pinned if f"{line} " not in tested] == []
