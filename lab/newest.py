"""`python -m lab.newest` (`make newest`): tests with the newest of all that the ranges allow, and
without a lock.

Rule 1: An environment of its own in .venv/newest, and another one for each other Python; what is
there is upgraded. What pip chose is printed, so that a run that fails says with which version.
Rule 2: The integration has an environment of its own: LiteLLM's proxy pins what the counter does
not.
"""

import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

ROOT = Path(__file__).parents[1]
NEWEST = ROOT / ".venv" / "newest"
INTEGRATION = "integrations/litellm"
OURS = ("exact-counter",)
TESTS = ["tests/ledger", "tests/reader", "tests/service", INTEGRATION]
TOOLS = (
    "anyio",
    "boto3-stubs",
    "hypothesis",
    "httpx",
    "moto",
    "opentelemetry-sdk",
    "pytest",
    "pyyaml",
)
"""Of the group `dev`: what these tests import.

The others check code, and build pages and wheels.
"""


def main(
    tests: Annotated[
        list[str] | None, typer.Argument(help=f"Folders of tests, of {', '.join(TESTS)}.")
    ] = None,
    python: Annotated[str, typer.Option(help="The Python that plays them.")] = sys.executable,
) -> None:
    """Install the newest packages that pyproject.toml allows, print their versions, and run the
    tests with them.

    Exit code: 1 when pip cannot install them or a test fails.
    """
    chosen = tests or TESTS
    core = [name for name in chosen if name != INTEGRATION]
    tools = [each for each in ranges(ROOT, "dev") if each.startswith(TOOLS)]
    failed = 0
    if core:
        interpreter = environment(
            python, "counter", [*ranges(ROOT, "service", "cli", "fast"), *tools]
        )
        command = ("-m", "pytest", "-q", "--numprocesses", "auto", "--maxprocesses", "4", *core)
        failed += subprocess.run([interpreter, *command], cwd=ROOT, check=False).returncode
    if INTEGRATION in chosen:
        asked = [*ranges(ROOT, "async", "cli"), *ranges(ROOT / INTEGRATION, "tests"), *tools]
        interpreter = environment(python, "litellm", asked)
        command = ("-m", "pytest", "-q")
        failed += subprocess.run(
            [interpreter, *command], cwd=ROOT / INTEGRATION, check=False
        ).returncode
    raise typer.Exit(failed > 0)


def ranges(folder: Path, *names: str) -> Iterator[str]:
    """What a pyproject.toml asks for, with what it asks for in extras and groups of these names.
    What is of this checkout, and groups that a group includes, are left out.
    """
    said: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    project = said["project"]
    optional = project["optional-dependencies"] | said.get("dependency-groups", {})
    asked = [*project["dependencies"], *(each for name in names for each in optional[name])]
    return (each for each in asked if isinstance(each, str) and not each.startswith(OURS))


def environment(python: str, name: str, asked: Sequence[str]) -> str:
    """The interpreter of an environment with the newest of that; it imports the checkout as
    .venv's does.
    """
    version = _said(python, "import sys; print('%d.%d' % sys.version_info[:2])")
    folder = NEWEST / f"{name}-{version}"
    interpreter = str(folder / "bin" / "python")
    if not Path(interpreter).exists():
        subprocess.run([python, "-m", "venv", folder], check=True)
    pip = (interpreter, "-m", "pip", "--disable-pip-version-check")
    chosen = ("--upgrade", "--upgrade-strategy", "eager", *asked)
    if subprocess.run([*pip, "install", "--quiet", *chosen], check=False).returncode:
        sys.exit(f"error: pip cannot install the newest packages for {name} on Python {version}.")
    place = _said(interpreter, "import sysconfig; print(sysconfig.get_path('purelib'))")
    Path(place, "checkout.pth").write_text(f"{ROOT}\n")
    print(f"{name} on Python {version}, with", flush=True)
    subprocess.run([*pip, "freeze"], check=True)
    return interpreter


def _said(python: str, code: str) -> str:
    return subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


if __name__ == "__main__":
    typer.run(main)
