"""What `make dist` made: what is in it, and that the wheel works in an environment that has
nothing else of ours.
"""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata
from readme_renderer import markdown

from ledger import __version__
from simulator.fixtures import NEEDS_MOTO
from tests.docs.pages import ROOT, blocks, source

(WHEEL,) = (ROOT / "dist").glob("*.whl")
(SOURCE,) = (ROOT / "dist").glob("*.tar.gz")
README = ROOT / "README.md"
YOUR_TESTS = ROOT / "docs" / "your-tests.md"
INSTALLED = ROOT / "build" / "wheel"
"""Where `make dist` installed the wheel, for this environment, with the newest of all packages."""

ON_MOTO = """

@pytest.mark.xfail(raises=pytest.fail.Exception)
def test_on_moto(moto_counters): ...
"""
LAMBDAS = ROOT / ".venv" / "313" / "bin" / "python"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = {name.partition(".")[0] for name in PROJECT["tool"]["setuptools"]["packages"]}
URLS = PROJECT["project"]["urls"]
SOURCE_URL = URLS["Source"]
FILE = re.compile(
    rf"{re.escape(SOURCE_URL)}/(?:blob|raw)/(?:main|v{re.escape(__version__)})/([^#]+)(?:#(.+))?"
)
"""The address of a file of the repository: its path, and a heading of it."""
OF_A_HEADING = "user-content-"
"""What an index puts before the name of each heading."""


def of_the_packages() -> dict[str, bytes]:
    """The files that git has of them."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *PACKAGES]
    names = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {name: (ROOT / name).read_bytes() for name in names}


def test_the_wheel_holds_its_packages_and_the_license() -> None:
    with zipfile.ZipFile(WHEEL) as wheel:
        held = {name: wheel.read(name) for name in wheel.namelist()}
    info = f"exact_counter-{__version__}.dist-info/"
    assert {
        name: file for name, file in held.items() if not name.startswith(info)
    } == of_the_packages()
    assert held[f"{info}licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    assert {name for name in held if name.endswith("py.typed")} == {
        f"{name}/py.typed" for name in PACKAGES - {"ledgerctl"}
    }


def test_the_source_distribution_builds_the_wheel_without_tests() -> None:
    with tarfile.open(SOURCE) as source:
        held = {member.name.partition("/")[2] for member in source if member.isfile()}
    assert held >= {*of_the_packages(), "CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml"}
    assert not [name for name in held if name.startswith(("tests/", "lab/", "service/", "infra/"))]


@pytest.fixture(scope="module")
def metadata() -> Metadata:
    with zipfile.ZipFile(WHEEL) as wheel:
        text = wheel.read(f"exact_counter-{__version__}.dist-info/METADATA")
    return Metadata.from_email(text, validate=True)


def test_an_index_takes_the_metadata(metadata: Metadata) -> None:
    found = metadata
    assert (found.name, str(found.version), found.license_expression) == (
        "exact-counter",
        __version__,
        "Apache-2.0",
    )
    assert found.project_urls == URLS
    of_the_clone = {URLS["Changelog"], URLS["Documentation"]}
    assert dead([*of_the_clone], "") == []
    assert set(found.provides_extra or ()) == {"async", "cli", "fast"}


def dead(links: list[str], page: str) -> list[str]:
    """Which links lead nowhere from an index: not to a heading of the page, not to a file of the
    clone or a heading there, and not to another site, which nobody asks.
    """

    def leads_somewhere(link: str) -> bool:
        if link.startswith("#"):
            return f'id="{link[1:]}"' in page
        if (of_ours := FILE.fullmatch(link)) is None:
            return link.startswith("https://") and not link.startswith(f"{SOURCE_URL}/")
        path, heading = ROOT / of_ours[1], of_ours[2]
        if heading is None or not path.is_file():
            return path.exists() and heading is None
        return f'id="{OF_A_HEADING}{heading}"' in str(markdown.render(path.read_text()))

    return [link for link in links if not leads_somewhere(link)]


def dead_of(page: str) -> list[str]:
    """The dead links and pictures of a page, as an index shows it."""
    shown = markdown.render(page)
    assert shown is not None
    return dead(re.findall(r' (?:href|src)="([^"]*)"', shown), shown)


def test_an_index_shows_the_readme_without_a_dead_link(metadata: Metadata) -> None:
    page = str(metadata.description)
    shown = str(markdown.render(page))
    tags = {"h1", "table", "pre", "img"}
    assert {tag for tag in tags if f"<{tag}" in shown} == tags
    assert dead_of(page) == []
    at_the_tag = re.compile(rf"{re.escape(SOURCE_URL)}/(?:blob|raw)/v{re.escape(__version__)}/")
    assert at_the_tag.sub("", page).strip() == README.read_text().strip()
    assert all(code in page for code in blocks(README, "python"))


def test_a_dead_link_of_the_readme_is_found() -> None:
    at_the_tag = f"{SOURCE_URL}/blob/v{__version__}"
    links = [
        "docs/index.md",  # of a clone
        f"{at_the_tag}/no-such-page.md",
        f"{at_the_tag}/CONTRIBUTING.md#no-such-heading",
        f"{SOURCE_URL}/blob/v9.9.9/docs/index.md",
    ]
    live = ["https://example.com", f"{at_the_tag}/CONTRIBUTING.md#locks", "#page"]
    page = "# Page\n\n" + "\n".join(f"[a link]({link})" for link in [*links, "#no", *live])
    found = dead_of(f"{page}\n![a picture](docs/live.webp)\n")
    assert found == [*links, "#user-content-no", "docs/live.webp"]


@pytest.mark.parametrize("python", [Path(sys.executable), LAMBDAS], ids=["oldest", "lambda"])
def test_the_wheel_works_alone_with_the_oldest_packages(python: Path, tmp_path: Path) -> None:
    if not python.exists():
        pytest.skip("Lambda's Python is not here")
    there = tmp_path / "bin" / "python"

    def run(*command: object, code: int = 0) -> str:
        # without PYTHONPATH
        environ = {"HOME": os.environ["HOME"], "PATH": os.environ["PATH"], "COLUMNS": "80"}
        ran = subprocess.run(
            [*map(str, command)],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == code, ran.stdout + ran.stderr
        return ran.stdout

    pip = (sys.executable, "-m", "pip", "--python", there, "--disable-pip-version-check")
    install = (*pip, "install", "--quiet", "--no-compile", "--no-deps")
    run(python, "-m", "venv", "--without-pip", tmp_path)
    run(*install, "--require-hashes", "-r", ROOT / "requirements" / "oldest.lock")
    run(*install, WHEEL)
    run(*pip, "check")
    (example,) = blocks(README, "python")
    assert run(there, "-c", example).splitlines() == re.findall(
        r"^ *print\(.*\)  # (.+)$", example, re.MULTILINE
    )
    assert run(tmp_path / "bin" / "ledgerctl", "--version") == f"ledgerctl {__version__}\n"
    assert "Add one change to a counter" in run(there, "-m", "ledgerctl", "--help")
    assert "dollars a month" in run(tmp_path / "bin" / "ledgerctl", "cost", "--changes", "10M")
    # the fixtures, with the oldest pytest and no other plugin, and without moto
    run(*install, "--require-hashes", "-r", ROOT / "requirements" / "pytest.lock")
    (tmp_path / "test_ours.py").write_text(blocks(YOUR_TESTS, "python")[0] + ON_MOTO)
    said = run(there, "-m", "pytest", "-q", "-rs", "--strict-markers", "test_ours.py")
    assert "1 passed, 1 xfailed" in said
    assert NEEDS_MOTO in run(there, "-m", "pytest", "--runxfail", "test_ours.py", code=1)


def test_the_plugin_works_with_the_newest_pytest_and_moto(tmp_path: Path) -> None:
    (tmp_path / "test_ours.py").write_text(source(YOUR_TESTS))
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-q", "--strict-markers", "test_ours.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(INSTALLED)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, "2 passed" in ran.stdout) == (0, True), ran.stdout + ran.stderr
