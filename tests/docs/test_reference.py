"""The reference has all that users import from `exact_counter`, and pages import nothing else."""

import ast
import re
from importlib import import_module
from itertools import chain
from pathlib import Path

import pytest

from exact_counter import errors
from lab.pages import PUBLIC
from tests.docs.pages import DOCS, ROOT, blocks

OURS = {path.parent.name for path in ROOT.glob("*/__init__.py")}

# An operator runs it in a clone, to mend items that no public name reaches.
RUNBOOKS = DOCS / "runbooks.py"


def names_of(module: str) -> list[str]:
    return [f"{module}.{name}" for name in import_module(module).__all__]


def imported(code: str) -> set[str]:
    """The modules that the code imports, and in full the names that it imports from modules."""
    names = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def code_of_pages() -> dict[Path, str]:
    """The Python of each page, and of each file beside the pages."""
    pages = [ROOT / "README.md", *DOCS.rglob("*.md"), *ROOT.glob("integrations/*/README.md")]
    code = {page: "\n".join(blocks(page, "python")) for page in pages}
    return code | {file: file.read_text() for file in DOCS.rglob("*.py")}


def beside_the_door(code: str) -> set[str]:
    """What the code imports of this project, and is not in the reference."""
    public = {*PUBLIC, *chain.from_iterable(map(names_of, PUBLIC))}
    return {name for name in imported(code) if name.partition(".")[0] in OURS} - public


def test_the_reference_has_each_public_name_once() -> None:
    pages = "".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    there = re.findall(r"^::: ([\w.]+)$", pages, re.MULTILINE)
    # A module that stands there is shown with all of its names.
    shown = [*there, *chain.from_iterable(names_of(name) for name in there if name in PUBLIC)]
    public = chain.from_iterable(map(names_of, PUBLIC))
    assert sorted(shown) == sorted(public)


def test_pages_import_what_the_reference_has_and_nothing_deeper() -> None:
    code = code_of_pages()
    assert beside_the_door(code.pop(RUNBOOKS))
    assert {page: found for page, text in code.items() if (found := beside_the_door(text))} == {}


def test_an_integration_imports_the_door_alone() -> None:
    files = [*ROOT.glob("integrations/*/ledger_*/*.py")]
    assert files
    found = {file.name: beside_the_door(file.read_text()) for file in files}
    assert {file: names for file, names in found.items() if names} == {}


def test_the_lab_of_an_integration_imports_the_door_and_our_lab() -> None:
    files = ROOT.glob("integrations/*/*_lab/*.py")
    found = set().union(*(beside_the_door(file.read_text()) for file in files))
    assert found
    assert {name for name in found if not name.startswith("lab.")} == set()


@pytest.mark.parametrize(
    "line",
    [
        "import ledger",
        "import reader.aio as reading",
        "from compactor import Compactor",
        "if True:\n    from simulator.world import World",
        "import exact_counter.ledger",
        "from exact_counter import items",
        "from lab.histories import mistakes",
        "from exact_counter.ledger import Ledger",
    ],
)
def test_an_import_beside_the_door_is_found(line: str) -> None:
    assert beside_the_door(line)


def test_the_table_of_retries_has_each_error_and_agrees_with_it() -> None:
    rows = re.findall(
        r"^\| ([^|]*) \| [^|]* \| ([^|]*) \|$", (DOCS / "retries.md").read_text(), re.MULTILINE
    )
    to_do = {name: do for names, do in rows for name in re.findall(r"`([A-Z]\w+)`", names)}
    kinds = {kind for name in errors.__all__ if isinstance(kind := getattr(errors, name), type)}
    single = {kind for kind in kinds if not kind.__subclasses__()}
    single = {kind for kind in single if not issubclass(kind, errors.InvalidInput)}
    assert {kind.__name__ for kind in single} <= to_do.keys()
    for kind in single:
        do = to_do[kind.__name__]
        assert not issubclass(kind, errors.Again) or "again" in do, kind
        final = re.search(r"that\s+is\s+final|no\s+(further\s+attempt|retry)", str(kind.__doc__))
        assert (final is not None) <= do.startswith("do not repeat it"), kind
