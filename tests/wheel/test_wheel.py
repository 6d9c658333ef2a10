"""What `make dist` made: what is in it, and that the wheel works beside whatever a user has, in an
environment that has nothing else of ours.
"""

import os
import re
import runpy
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
SETUPTOOLS = PROJECT["tool"]["setuptools"]
FOLDERS = {"exact_counter", *SETUPTOOLS["package-dir"].values()}
"""Of the clone, what the wheel has."""
below = runpy.run_path(str(ROOT / "setup.py"))["below"]
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
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *FOLDERS]
    names = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {name: (ROOT / name).read_bytes() for name in names}


def in_the_wheel(name: str, file: bytes) -> tuple[str, bytes]:
    """Where a file of the clone stands in the wheel, and what it says there."""
    if name.endswith(".py"):
        file = below(file.decode(), FOLDERS - {"exact_counter"}).encode()
    return (name if name.startswith("exact_counter/") else f"exact_counter/{name}"), file


def test_the_wheel_holds_one_package_and_its_licenses() -> None:
    with zipfile.ZipFile(WHEEL) as wheel:
        held = {name: wheel.read(name) for name in wheel.namelist()}
    info = f"exact_counter-{__version__}.dist-info/"
    ours = dict(in_the_wheel(*each) for each in of_the_packages().items())
    assert {name: file for name, file in held.items() if not name.startswith(info)} == ours
    for name in ("LICENSE", "ledgerctl/console/page/uPlot.LICENSE.txt"):
        assert held[f"{info}licenses/{name}"] == (ROOT / name).read_bytes()
    assert held[f"{info}top_level.txt"] == b"exact_counter\n"


def test_no_import_of_the_wheel_names_a_package_of_the_clone() -> None:
    names = "|".join(sorted(FOLDERS - {"exact_counter"}))
    imports = re.compile(rf"^ *(?:from|import) (?:{names})\b.*", re.MULTILINE)
    with zipfile.ZipFile(WHEEL) as wheel:
        files = [name for name in wheel.namelist() if name.endswith(".py")]
        found = {name: imports.findall(wheel.read(name).decode()) for name in files}
    assert len(found) > 150
    assert not {name: lines for name, lines in found.items() if lines}


def test_the_source_distribution_builds_the_wheel_without_tests() -> None:
    with tarfile.open(SOURCE) as source:
        held = {member.name.partition("/")[2] for member in source if member.isfile()}
    assert held >= {*of_the_packages(), "CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml"}
    assert not [name for name in held if name.startswith(("tests/", "lab/", "service/", "infra/"))]


def test_what_an_earlier_build_left_is_not_shipped(tmp_path: Path) -> None:
    with tarfile.open(SOURCE) as source:
        source.extractall(tmp_path, filter="data")
    (clone,) = tmp_path.iterdir()
    stale = clone / "build" / "lib" / "ledger" / "stale.py"
    stale.parent.mkdir(parents=True)
    stale.write_text("")
    build = f"-m build --no-isolation --wheel --outdir {tmp_path} {clone}"
    subprocess.run([sys.executable, *build.split()], capture_output=True, check=True)
    (again,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(again) as built, zipfile.ZipFile(WHEEL) as wheel:
        assert sorted(built.namelist()) == sorted(wheel.namelist())


CLONES = """
import os, site, sys

sys.path[:] = [path for path in sys.path if not os.path.exists(f"{path}/exact_counter")]
site.addsitedir(os.environ["SITE"])

from exact_counter import Ledger
from ledgerctl.console.server import FILES, NAMES

print(Ledger.__module__, "page.html" in NAMES, FILES)
"""


@pytest.mark.parametrize("mode", ["lenient", "strict"])
def test_an_editable_installation_is_the_clone(tmp_path: Path, mode: str) -> None:
    """A strict one has links to the files that a wheel would have."""
    with tarfile.open(SOURCE) as source:
        source.extractall(tmp_path, filter="data")
    (clone,) = tmp_path.glob("exact_counter-*")
    install = "-m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation"
    how = ("--config-settings", f"editable_mode={mode}", "--target", tmp_path / "there")
    command = [sys.executable, *install.split(), *how, "--editable", clone]
    subprocess.run([*map(str, command)], capture_output=True, check=True)
    ran = subprocess.run(
        [sys.executable, "-P", "-c", CLONES],
        cwd=tmp_path,
        env=os.environ | {"SITE": str(tmp_path / "there")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.startswith(f"ledger.client.writer True {clone}/")


def test_setuptools_will_go_on_to_ship_what_it_ships() -> None:
    """It warns of files that a later one leaves out."""
    assert "Successfully built" in (said := (ROOT / "build" / "dist.txt").read_text())
    assert "would be ignored" not in said


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


OF_OTHERS = {
    "reader": "def make_reader(url): return url",
    "ledger": "class Ledger: pass",
    "ulid": "class ULID: pass",  # python-ulid's, which has no from_bytes
}
"""Packages of an index that have such names."""

YOURS = ("ledger", "reader", "compactor", "simulator", "ledgerctl", "errors", "queue", "testing")
"""Modules of such names that a user may have in the working directory."""

ALONE = """
import pickle, sys
from exact_counter import Compactor, Ledger, Reader, Settings, errors
from exact_counter.testing import MemoryTable, Simulation
import exact_counter.budgets, exact_counter.queue

table, settings = MemoryTable(), Settings(table="counters", region="eu-west-1")
receipt = Ledger(settings, table=table).add("a", 3)
assert pickle.loads(pickle.dumps(receipt)) == receipt
try:
    Reader(settings, table=table).value("")
except errors.LedgerError as error:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (errors.InvalidCounter, str(error)), again
Compactor(settings, tables={"eu-west-1": table}).compact("a")
for name in NAMES:
    assert name not in sys.modules, name
print(Reader(settings, table=table).value("a"))
"""

USERS = """
from typing import reveal_type
import exact_counter
from exact_counter import Ledger, Reader, Settings
from exact_counter.errors import LimitReached

ledger = Ledger(Settings(table="counters", region="eu-west-1"))
reveal_type(ledger.add("a", 3).change)
reveal_type(Reader(ledger.settings).value("a"))
try:
    ledger.add("a", "3")
except LimitReached as refused:
    reveal_type(refused.available)
reveal_type(exact_counter.budgets.TIMEOUT)
exact_counter.Leger
"""
"""A user's program, with two mistakes for a type checker."""


class Environment:
    """A virtual environment with the wheel, of a user who has packages and modules of our names."""

    def __init__(self, folder: Path, python: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.python = self.bin / "python"
        self.run(python, "-m", "venv", "--without-pip", folder)
        (self.packages,) = folder.glob("lib/*/site-packages")
        self.pip = (sys.executable, "-m", "pip", "--python", self.python)
        self.install("--require-hashes", "-r", ROOT / "requirements" / "oldest.lock")
        for name, text in OF_OTHERS.items():
            (self.packages / name).mkdir()
            (self.packages / name / "__init__.py").write_text(text)
        for name in YOURS:
            if name != "queue":  # Python's own, which others import
                (folder / f"{name}.py").write_text(f'raise RuntimeError("your own {name}.py")')
        before = {path.name for path in (*self.packages.iterdir(), *self.bin.iterdir())}
        self.install(WHEEL)
        after = {path.name for path in (*self.packages.iterdir(), *self.bin.iterdir())}
        self.brought = after - before

    def install(self, *what: object) -> None:
        quiet = ("--disable-pip-version-check", "install", "--quiet", "--no-compile", "--no-deps")
        self.run(*self.pip, *quiet, *what)

    def run(self, *command: object, code: int = 0) -> str:
        """What a command prints in the user's folder, without PYTHONPATH; it ends with `code`."""
        ran = subprocess.run(
            [*map(str, command)],
            cwd=self.folder,
            env={"HOME": os.environ["HOME"], "PATH": os.environ["PATH"], "COLUMNS": "80"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == code, ran.stdout + ran.stderr
        return ran.stdout if code == 0 else ran.stdout + ran.stderr


@pytest.fixture(scope="module", params=[Path(sys.executable), LAMBDAS], ids=["oldest", "lambda"])
def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    """With the oldest packages that the wheel allows."""
    if not request.param.exists():
        pytest.skip("Lambda's Python is not here")
    return Environment(tmp_path_factory.mktemp("installed"), request.param)


def test_the_wheel_brings_one_name_and_a_program(installed: Environment) -> None:
    info = f"exact_counter-{__version__}.dist-info"
    assert installed.brought == {"exact_counter", info, "ledgerctl"}
    for name, text in OF_OTHERS.items():
        assert (installed.packages / name / "__init__.py").read_text() == text
    installed.run(*installed.pip, "check")


def test_the_readme_runs_beside_modules_of_such_names(installed: Environment) -> None:
    examples = blocks(README, "python")
    assert len(examples) == 2
    for example in examples:
        printed = re.findall(r"^ *print\(.*\)  # (.+)$", example, re.MULTILINE)
        assert printed
        assert installed.run(installed.python, "-c", example).splitlines() == printed


def test_the_wheel_loads_no_module_of_such_a_name(installed: Environment) -> None:
    names = sorted({*YOURS, *OF_OTHERS} - {"queue"})
    assert installed.run(installed.python, "-c", ALONE.replace("NAMES", repr(names))) == "3\n"


def test_an_import_that_is_not_rewritten_is_found(installed: Environment) -> None:
    """With the import of one file of the wheel as the clone has it, the test above is red."""
    file = installed.packages / "exact_counter" / "reader" / "cache.py"
    right = file.read_text()
    wrong = right.replace("from exact_counter.ledger.", "from ledger.", 1)
    assert wrong != right
    file.write_text(wrong)
    try:
        said = installed.run(installed.python, "-c", ALONE.replace("NAMES", "[]"), code=1)
    finally:
        file.write_text(right)
    assert "RuntimeError: your own ledger.py" in said


def test_the_program_of_the_wheel_runs(installed: Environment) -> None:
    ledgerctl = installed.bin / "ledgerctl"
    assert installed.run(ledgerctl, "--version") == f"ledgerctl {__version__}\n"
    help_ = installed.run(installed.python, "-m", "exact_counter", "--help")
    assert "Add one change to a counter" in help_
    assert "dollars a month" in installed.run(ledgerctl, "cost", "--changes", "10M")


def test_the_console_has_its_page_in_a_zip(installed: Environment) -> None:
    """As from an archive of zipapp."""
    code = (
        f"import sys; sys.path.insert(0, {str(WHEEL)!r}); "
        "import exact_counter.ledgerctl.console.server as server; "
        "print(server.__file__, (server.FILES / 'page.html').read_text())"
    )
    said = installed.run(installed.python, "-c", code)
    assert said.startswith(f"{WHEEL}/exact_counter/ledgerctl/console/server.py <!doctype html>")


def test_a_users_program_is_typed(installed: Environment) -> None:
    users = installed.folder / "users.py"
    users.write_text(USERS)
    mypy = (sys.executable, "-m", "mypy", "--strict", "--cache-dir", installed.folder / "cache")
    said = installed.run(*mypy, "--python-executable", installed.python, "users.py", code=1)
    revealed = re.findall(r'Revealed type is "(.+)"', said)
    assert revealed == ["int", "int", "int | None", "datetime.timedelta"]
    assert 'has incompatible type "str"; expected "int"' in said
    assert 'Module has no attribute "Leger"' in said
    assert "Found 2 errors in 1 file" in said


def test_the_plugin_works_with_the_oldest_pytest(installed: Environment) -> None:
    """And without any other plugin, and without moto."""
    installed.install("--require-hashes", "-r", ROOT / "requirements" / "pytest.lock")
    (installed.folder / "test_ours.py").write_text(blocks(YOUR_TESTS, "python")[0] + ON_MOTO)
    pytest_ = (installed.python, "-m", "pytest")
    said = installed.run(*pytest_, "-q", "-rs", "--strict-markers", "test_ours.py")
    assert "1 passed, 1 xfailed" in said
    assert NEEDS_MOTO in installed.run(*pytest_, "--runxfail", "test_ours.py", code=1)


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
