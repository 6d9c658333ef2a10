"""setup.py: the imports of the wheel. tests/wheel has the wheel itself."""

import ast
import re
import runpy
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from setuptools import Distribution  # type: ignore[import-untyped]

from exact_counter import Compactor, Ledger, Reader
from ledger.core.errors import PAGES, SOURCE

ROOT = Path(__file__).parents[1]
SETUP = runpy.run_path(str(ROOT / "setup.py"))
below = SETUP["below"]
PACKAGES = {"ledger", "reader"}
BELOW = ("compactor", "ledger", "ledgerctl", "reader", "simulator")
SIDES = {"compactor": Compactor, "ledger": Ledger, "reader": Reader}
PATH = re.compile(
    rf"(?<![\w./])(?:({'|'.join(BELOW)})\.(\w+)|(?:from|import) (?:{'|'.join(BELOW)})\b)"
    rf"|^(?:{'|'.join(BELOW)})\.$"
)
"""A module of the clone in a text, or the beginning of all modules of a package."""

CLONE = '''"""`from ledger import x` in a docstring."""
from __future__ import annotations
import os; from ledger import Ledger; import reader as side
from ledger.core.errors import (
    LedgerError,
    LimitReached,
)
import json, reader.page as page, ledger as adding
from . import ledger
from .reader import Reader
from ledgers import other
from exact_counter import errors
if TYPE_CHECKING:
    from reader import Reader
def f(name="ledger.add"):
    from ledger import Settings as Ours
    é = "ü"; from ledger.core import items
    return "from ledger import x", items
'''
WHEEL = '''"""`from ledger import x` in a docstring."""
from __future__ import annotations
import os; from exact_counter.ledger import Ledger; import exact_counter.reader as side
from exact_counter.ledger.core.errors import (
    LedgerError,
    LimitReached,
)
import json, exact_counter.reader.page as page, exact_counter.ledger as adding
from . import ledger
from .reader import Reader
from ledgers import other
from exact_counter import errors
if TYPE_CHECKING:
    from exact_counter.reader import Reader
def f(name="ledger.add"):
    from exact_counter.ledger import Settings as Ours
    é = "ü"; from exact_counter.ledger.core import items
    return "from ledger import x", items
'''


def test_each_import_and_nothing_else_names_the_door() -> None:
    assert below(CLONE, PACKAGES) == WHEEL
    assert below(WHEEL, PACKAGES) == WHEEL


@pytest.mark.parametrize("line", ["import ledger", "import os, ledger.core.items"])
def test_an_import_that_binds_another_name_there_is_refused(line: str) -> None:
    with pytest.raises(SyntaxError, match="line 2: import ledger"):
        below(f"import os\n{line}\n", PACKAGES)


def nodes(*packages: str) -> Iterator[tuple[str, ast.AST]]:
    """Every node of the code of these packages, with its file."""
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                yield str(path.relative_to(ROOT)), node


def test_a_module_named_by_a_string_is_relative() -> None:
    """Or it would be the clone's, and in the wheel anybody's."""
    calls = [
        (name, node)
        for name, node in nodes("exact_counter", *BELOW)
        if isinstance(node, ast.Call) and "import" in ast.unparse(node.func)
    ]
    assert {name for name, _ in calls} == {
        "compactor/__init__.py",
        "exact_counter/__init__.py",
        "ledgerctl/app.py",
        "simulator/__init__.py",
    }
    for name, call in calls:
        assert ast.unparse(call.func) == "import_module"
        assert len(call.args) == 2, name


def paths_in(text: str) -> list[str]:
    """The modules that a text names; "ledger.add" is no module but a call's name."""
    return [
        found[0]
        for found in PATH.finditer(text)
        if not (found[1] in SIDES and hasattr(SIDES[found[1]], found[2]))
    ]


def test_no_text_names_a_module_that_the_wheel_does_not_have() -> None:
    """Its reader has `exact_counter` alone. In a comparison such a name would never be found."""
    assert paths_in("`ledger.errors`, reader.Nobody, from ledger import") == [
        "ledger.errors",
        "reader.Nobody",
        "from ledger",
    ]
    assert paths_in("ledger.") == ["ledger."]
    assert not paths_in("exact_counter.errors, ledger.add, ledger/core/errors.py, the ledger.")
    found = {
        f"{name}:{node.lineno}: {path}"
        for name, node in nodes("exact_counter", *BELOW, "service")
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for path in paths_in(node.value)
    }
    assert not found


TARGETS = "|".join(
    re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
)
OF_A_CLONE = re.compile(
    rf"(?<!{re.escape(PAGES)})"
    r"\b(?:docs|infra|integrations|lab|requirements|service|tests)/\w(?:[\w/-]|\.\w)*+"
    rf"(?! of {re.escape(SOURCE)})"
    rf"|\bmake (?:{TARGETS})\b(?! in a clone)"
)
"""A file or a command that the wheel does not have, without its address and not of a clone."""

TEXTS = """
def adds(): "Formats: docs/data-model.md"
@command("add")
def add(): "See docs/costs.md."
"docs/retries.md", f"{PAGES} docs/gates.md", f"{PAGES}docs/limits.md", f"{x}tests/ledger"
f"docs/index.md of {SOURCE}, and docs/console.md"; "make it: make deploy", "make api in a clone"
"""


def shown(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of what code may show: each string but the docstring of what is no command."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(node.value)
        elif isinstance(node, ast.FunctionDef) and node.decorator_list:
            yield node.lineno, ast.get_docstring(node) or ""
    addresses = {"PAGES": PAGES, "SOURCE": SOURCE}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {*node.values}
            parts = [
                str(part.value)
                if isinstance(part, ast.Constant)
                else addresses.get(ast.unparse(part)[1:-1], "…")
                for part in node.values
            ]
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and node not in skipped:
            yield node.lineno, str(node.value)


def of_a_clone(tree: ast.AST) -> list[tuple[int, str]]:
    return [(line, found) for line, text in shown(tree) for found in OF_A_CLONE.findall(text)]


def test_no_text_names_a_file_that_the_wheel_does_not_have() -> None:
    """Or it says where the file is, or that a clone has it."""
    assert {found for _, found in of_a_clone(ast.parse(TEXTS))} == {
        "docs/costs.md",
        "docs/console.md",
        "docs/gates.md",
        "docs/retries.md",
        "make deploy",
        "tests/ledger",
    }
    found = {
        f"{path.relative_to(ROOT)}:{line}: {named}"
        for package in ("exact_counter", *BELOW)
        for path in (ROOT / package).rglob("*.py")
        for line, named in of_a_clone(ast.parse(path.read_text("utf-8")))
    }
    assert not found


def test_the_addresses_in_texts_are_those_of_the_metadata() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
    assert urls["Source"] == SOURCE
    assert urls["Documentation"] == f"{PAGES}docs/index.md"


def built(clone: Path, build_lib: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build a package `ledger` of one file, as the wheel's are built."""
    for path in (clone / "ledger", build_lib):
        path.mkdir(parents=True)
    monkeypatch.chdir(clone)
    (clone / "ledger" / "__init__.py").write_text("from ledger import x")
    (build_lib / "other.py").write_text("from ledger import y")
    distribution = Distribution(
        {
            "packages": ["exact_counter.ledger"],
            "package_dir": {"exact_counter.ledger": "ledger"},
            "script_name": "setup.py",
        }
    )
    command = SETUP["Below"](distribution)
    monkeypatch.setitem(type(command).run.__globals__, "ROOT", clone)
    command.ensure_finalized()
    command.build_lib = str(build_lib)
    command.run()
    file = build_lib / "exact_counter" / "ledger" / "__init__.py"
    assert file.read_text() == "from exact_counter.ledger import x"


def test_a_build_forgets_an_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built(tmp_path, tmp_path / "build" / "lib", monkeypatch)
    assert not (tmp_path / "build" / "lib" / "other.py").exists()


def test_a_build_leaves_what_is_not_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`setup.py build --build-lib` may name a folder that has other files."""
    elsewhere = tmp_path / "elsewhere"
    built(tmp_path / "clone", elsewhere, monkeypatch)
    assert (elsewhere / "other.py").read_text() == "from ledger import y"
