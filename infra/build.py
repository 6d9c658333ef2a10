"""Builds the one zip that all functions share: our packages and the locked dependencies.

Rule 1: What goes in is decided by requirements-service.lock and its hashes; pip takes wheels only, for the target and
not for this machine.
Rule 2: botocore brings the models of all AWS services (27 MB). Only those in MODELS are packed.
"""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from infra.aws import DeploymentRefused

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "lambda"
ARTIFACT = BUILD / "service.zip"
LOCK = ROOT / "requirements-service.lock"
PACKAGES = ("compactor", "ledger", "reader", "service")

MODELS = ("dynamodb", "events", "sqs")  # the services that functions call
TARGETS = {
    "lambda": ("--platform", "manylinux2014_aarch64", "--python-version", "3.13", "--implementation", "cp"),
    "here": (),  # this machine's Python, for an engine that runs functions as processes of its own
}
SKIPPED = ("bin", "__pycache__")


def build(target: str) -> Path:
    """Makes the zip that serverless.yml names and answers its path. Raises DeploymentRefused."""
    packed, dependencies = BUILD / "packed", _dependencies(target)
    shutil.rmtree(packed, ignore_errors=True)
    shutil.copytree(
        dependencies, packed, ignore=lambda folder, names: skipped(Path(folder).relative_to(dependencies), names)
    )
    for package in PACKAGES:
        shutil.copytree(ROOT / package, packed / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.make_archive(str(ARTIFACT.with_suffix("")), "zip", packed)
    return ARTIFACT


def _dependencies(target: str) -> Path:
    # Named after the lock, so that it is fetched once, and a build after the first needs no network.
    digest = hashlib.sha256(LOCK.read_bytes() + repr((TARGETS[target], sys.version_info[:2])).encode()).hexdigest()[:16]
    directory = BUILD / f"{target}-{digest}"
    if directory.is_dir():
        return directory
    partial = directory.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    command += ["--require-hashes", "--no-deps", "--only-binary=:all:", "--target", str(partial), *TARGETS[target]]
    if subprocess.run([*command, "--requirement", str(LOCK)], check=False).returncode != 0:
        raise DeploymentRefused(f"pip could not install {LOCK.name} for {target}, see above. Nothing was deployed")
    partial.rename(directory)
    return directory


def skipped(folder: Path, names: Iterable[str]) -> set[str]:
    """What of a folder of the dependencies stays out of the zip."""
    if folder.parts == ("botocore", "data"):  # a folder a service, besides files
        return {name for name in names if name not in MODELS and "." not in name}
    if folder.parts == ("boto3",):
        return {"data", "examples"}
    return {name for name in names if name in SKIPPED or name.endswith((".pyc", ".pyi"))}
