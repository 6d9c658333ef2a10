"""Amazon's DynamoDB Local as a process, as `ministack` starts MiniStack; got from Maven Central
when it is not there.

Rule 1: Those of `ministack`. A Region's tables are its own here too, because DynamoDB Local keeps a
database for each access key and Region.
Rule 2: It is got by coordinates and through `mvn`, so that a mirror in Maven's own settings is
honoured; no host is named here. Its folder is there when its program `run` is, which comes last.
Rule 3: `run` listens on loopback only. DynamoDB Local by itself listens on every interface and has
no option against it, so a page of Java sets the host before the start; it is compiled at the start,
which needs a JDK and a second.
Rule 4: Four of its dependencies are left out: they send usage figures to AWS (switched off here),
and are not in every mirror. Three must still be there for Java to load the server, in whatever
version.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import typer

from lab.engines.ministack import LOG_TAIL_LINES, Engine, EngineMissing

VERSION = "3.3.1"
PLACEHOLDERS_VERSION = "2.41.0"
GET_TIMEOUT_S = 600
FILES = Path(__file__).with_name("local")
"""What its folder is made of: what to get, how to start it, and the page of Java."""


class DynamoDBLocal(Engine):
    """One DynamoDB Local that serves every Region, as an Engine."""

    name = f"DynamoDB Local {VERSION}"
    _probed, _up = "/", 400  # it wants credentials

    def executable(self) -> Path:
        """Raises EngineMissing too when it cannot be got."""
        return install()


def _place() -> Path:
    """Where it is or goes: LEDGER_DYNAMODB_LOCAL if set, else beside this Python (in `.venv`)."""
    return Path(
        os.environ.get("LEDGER_DYNAMODB_LOCAL") or Path(sys.prefix) / f"dynamodb-local-{VERSION}"
    )


def missing() -> list[str]:
    """What is not on the PATH of the Java and Maven that it takes to get it."""
    return [name for name in ("java", "mvn") if shutil.which(name) is None]


def installed() -> Path | None:
    """The program that starts DynamoDB Local, if it was got before and Java is still here."""
    run = _place() / "run"
    return run if run.is_file() and shutil.which("java") else None


def install() -> Path:
    """The program that starts DynamoDB Local, got now if it is not there.

    Raises EngineMissing with what is missing.
    """
    there = installed()
    if there is not None:
        return there
    if missing():
        raise EngineMissing(
            "DynamoDB Local needs a JDK (17 or later) and Maven. Put on PATH: "
            f"{', '.join(missing())}"
        )
    place = _place()
    place.mkdir(parents=True, exist_ok=True)
    for name in ("pom.xml", "Loopback.java"):
        shutil.copyfile(FILES / name, place / name)
    _get_jars(place)
    shutil.copyfile(FILES / "run", place / "run.new")
    (place / "run.new").chmod(0o755)
    return (place / "run.new").rename(place / "run")


def _get_jars(place: Path) -> None:
    command = [
        "mvn",
        "-B",
        "-q",
        "dependency:copy-dependencies",
        "-DincludeScope=runtime",
        "-DoutputDirectory=lib",
    ]
    command += [f"-Dlocal.version={VERSION}", f"-Dplaceholders.version={PLACEHOLDERS_VERSION}"]
    try:
        done = subprocess.run(
            command, cwd=place, capture_output=True, text=True, timeout=GET_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise EngineMissing(
            f"Maven did not get DynamoDB Local within {GET_TIMEOUT_S} s. Run it again"
        ) from None
    if done.returncode != 0 or not list(place.glob("lib/DynamoDBLocal-*.jar")):
        said = "\n".join((done.stdout + done.stderr).splitlines()[-LOG_TAIL_LINES:])
        raise EngineMissing(f"Maven could not get DynamoDB Local {VERSION}:\n{said}")


def main() -> None:
    """Gets DynamoDB Local."""
    try:
        print(f"DynamoDB Local: {install().parent}")
    except EngineMissing as error:
        sys.exit(str(error))


if __name__ == "__main__":
    typer.run(main)
