"""Builds the one zip that all functions share: our packages and the locked dependencies.

Rule 1: requirements/service.lock and its hashes decide what goes in; pip takes wheels only, for the
target and not for this machine.
Rule 2: The same files, and the same Python for rule 4, make the same bytes: sorted names, one time
stamp, one mode.
Rule 4: The zip has bytecode, because a function cannot keep what it compiles: without it each cold
start compiles all that it imports, and takes 2.5 times the CPU. A Python of the target's version
makes it; without one the zip works as well, slower. Nothing compares bytecode with its source: both
are in one zip.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from infra.aws import DeploymentRefused, say

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "lambda"
ARTIFACT = BUILD / "service.zip"
LOCK = ROOT / "requirements" / "service.lock"
PACKAGES = ("compactor", "ledger", "reader", "service")

# Rule 3: botocore brings the models of all AWS services (27 MB). The zip has only those in MODELS.
MODELS = ("dynamodb", "events", "sqs")  # the services that functions call
TARGETS = {
    "lambda": (
        "--platform",
        "manylinux2014_aarch64",
        "--python-version",
        "3.13",
        "--implementation",
        "cp",
    ),
    "here": (),  # this machine's Python, for an engine that runs functions as processes of its own
}
PYTHONS = {
    "lambda": ("3 13", [*os.environ.get("PYTHON313", "python3.13").split(), sys.executable]),
    "here": (f"{sys.version_info.major} {sys.version_info.minor}", [sys.executable]),
}
"""The version that runs a target, and the commands that may start a Python of it."""

TIME = (1980, 1, 1, 0, 0, 0)
MODE = 0o644
SKIPPED_SUFFIXES = (".pyc", ".pyi")
SKIPPED_NAMES = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
MIB = 1024 * 1024


def build(target: str) -> Path:
    """Make the zip that serverless.yml names. Returns its path. Raises DeploymentRefused."""
    files, python = [*_files(_dependencies(target))], python_of(target)
    if python is None:
        say("the zip has no bytecode, so cold starts are slower: name a Python 3.13, PYTHON313=...")
    with tempfile.TemporaryDirectory() as folder:
        write(
            ARTIFACT,
            [*files, *(bytecode(files, Path(folder), python) if python is not None else ())],
        )
    return ARTIFACT


def python_of(target: str) -> str | None:
    """The first Python that starts and has the target's version; None: there is none."""
    version, pythons = PYTHONS[target]
    for python in filter(None, map(shutil.which, pythons)):
        command = [python, "-c", "import sys; print(*sys.version_info[:2])"]
        if (
            subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
            == version
        ):
            return python
    return None


def bytecode(
    files: Iterable[tuple[str, Path]], folder: Path, python: str
) -> list[tuple[str, Path]]:
    """The bytecode that a Python makes of the modules, by its name in the zip.

    Raises DeploymentRefused.
    """
    for name, file in files:
        if name.endswith(".py"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / name)
    command = [
        python,
        "-m",
        "compileall",
        "-q",
        "--invalidation-mode",
        "unchecked-hash",
        "-s",
        str(folder),
    ]
    if subprocess.run([*command, str(folder)], check=False).returncode != 0:
        raise DeploymentRefused(
            f"{python} could not compile the packages. Nothing was deployed. See its message above"
        )
    return [(file.relative_to(folder).as_posix(), file) for file in folder.rglob("*.pyc")]


def write(path: Path, files: Iterable[tuple[str, Path]]) -> None:
    """Write a zip of files under their names, whole or not at all."""
    partial = path.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, file in sorted(files):
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = MODE << 16
            archive.writestr(entry, file.read_bytes())
    partial.replace(path)


def sizes(path: Path) -> str:
    """The size of a zip, for people; Lambda takes 250 MB unpacked."""
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    packed = path.stat().st_size / MIB
    return (
        f"{path.relative_to(ROOT)}: {packed:.2f} MiB zipped, {unpacked / MIB:.1f} unpacked; "
        f"sha256 {digest}"
    )


def _dependencies(target: str) -> Path:
    # The lock names the folder, so pip fetches once, and a build after the first needs no network.
    digest = hashlib.sha256(
        LOCK.read_bytes() + repr((TARGETS[target], sys.version_info[:2])).encode()
    ).hexdigest()[:16]
    directory = BUILD / f"{target}-{digest}"
    if directory.is_dir():
        return directory
    partial = directory.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-compile",
    ]
    command += [
        "--require-hashes",
        "--no-deps",
        "--only-binary=:all:",
        "--target",
        str(partial),
        *TARGETS[target],
    ]
    if subprocess.run([*command, "--requirement", str(LOCK)], check=False).returncode != 0:
        why = f"pip could not install {LOCK.name} for {target}"
        raise DeploymentRefused(f"{why}. Nothing was deployed. See its message above")
    partial.rename(directory)
    return directory


def _files(dependencies: Path) -> Iterator[tuple[str, Path]]:
    for root, directory in [
        *((ROOT, ROOT / package) for package in PACKAGES),
        (dependencies, dependencies),
    ]:
        if not directory.is_dir():
            raise DeploymentRefused(
                f"there is no {directory} to pack. Nothing was deployed. Build in a whole checkout"
            )
        for file in directory.rglob("*"):
            path = file.relative_to(root)
            if file.is_file() and not is_skipped(path):
                yield path.as_posix(), file


def is_skipped(path: Path) -> bool:
    """Whether a file stays out of the zip."""
    if path.name.endswith(SKIPPED_SUFFIXES) or path.name in SKIPPED_NAMES or path.parts[0] == "bin":
        return True
    # data/<service>/<version>/<file>
    if path.parts[:2] == ("botocore", "data") and len(path.parts) > 3:
        return path.parts[2] not in MODELS
    return path.parts[:2] == ("boto3", "data") or path.parts[:2] == ("boto3", "examples")
