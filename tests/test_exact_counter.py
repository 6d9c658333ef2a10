"""`exact_counter`, the name that users import."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from inspect import isclass, isfunction, signature
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import compactor
import exact_counter
import ledger
import ledger.errors
import reader

ROOT = Path(__file__).parents[1]
FACE = ROOT / "exact_counter"
BELOW = sorted(path.stem for path in FACE.glob("*.py") if path.stem not in ("__init__", "__main__"))


def test_the_door_has_what_the_sides_have() -> None:
    sides = {*ledger.__all__, *reader.__all__, *compactor.__all__, "__version__"}
    assert set(exact_counter.__all__) == sides
    assert exact_counter.__all__ == sorted(exact_counter.__all__) == dir(exact_counter)
    for side in (ledger, reader, compactor):
        for name in set(side.__all__) - {"errors"}:
            assert getattr(exact_counter, name) is getattr(side, name), name
    assert exact_counter.__version__ == ledger.__version__


def test_the_door_has_every_error() -> None:
    errors = {
        name for name in ledger.errors.__all__ if isinstance(getattr(ledger.errors, name), type)
    }
    assert set(exact_counter.errors.__all__) == errors
    for name in errors:
        assert getattr(exact_counter.errors, name) is getattr(ledger.errors, name)


def test_what_the_door_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'exact_counter' has no attribute 'Leger'"):
        exact_counter.Leger  # type: ignore[attr-defined]  # and for a type checker, too
    with pytest.raises(AttributeError, match="module 'compactor' has no attribute 'Reprot'"):
        compactor.Reprot  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", BELOW)
def test_a_module_below_the_door_has_what_it_says(name: str) -> None:
    if name == "fast":
        pytest.importorskip("httptools")
    module = import_module(f"exact_counter.{name}")
    assert module.__all__
    assert all(hasattr(module, each) for each in module.__all__)
    if name != "pytest_plugin":
        assert exact_counter.__getattr__(name) is module


def public(name: str) -> list[Any]:
    """The functions and classes that a module of the door has, and their methods."""
    module = import_module(name)
    found: list[Any] = []
    for each in (getattr(module, name) for name in module.__all__):
        if isfunction(each):
            found.append(each)
        elif isclass(each):
            methods = [
                each.__dict__[name]
                for name in each.__dict__
                if name == "__init__" or not name.startswith("_")
            ]
            found += [each, *filter(isfunction, methods)]
    return found


@pytest.mark.parametrize("module", ["", ".aio", ".budgets", ".errors", ".queue", ".testing"])
def test_the_types_of_what_is_public_are_there_when_code_runs(module: str) -> None:
    """What makes objects from a class's types, such as a framework's injection, reads them."""
    for each in public(f"exact_counter{module}"):
        get_type_hints(each)
        if isfunction(each):
            signature(each, eval_str=True)


@pytest.mark.parametrize("name", ["", *(f".{name}" for name in BELOW)])
def test_help_names_no_file_that_the_wheel_does_not_have(name: str) -> None:
    if name == ".fast":
        pytest.importorskip("httptools")
    module = import_module(f"exact_counter{name}")
    documented = [module, *(getattr(module, each) for each in module.__all__)]
    documented += [
        vars(each)[name]
        for each in documented
        if isclass(each)
        for name in vars(each)
        if not name.startswith("_")
    ]
    assert len(documented) > 1
    for each in documented:
        named = re.search(r"\b(docs|infra|integrations|lab|service|tests)/", each.__doc__ or "")
        assert not named, each


SIDES = {"compactor", "ledger", "reader", "simulator", "ledgerctl"}


@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        ("import exact_counter", set()),
        ("from exact_counter import errors", {"ledger"}),
        ("from exact_counter import Ledger, Settings, Limit", {"ledger"}),
        ("from exact_counter import Reader", {"ledger", "reader"}),
        ("from exact_counter import Compactor", {"ledger", "compactor"}),
        ("from exact_counter import budgets, queue", {"ledger"}),
        ("import exact_counter; exact_counter.budgets, exact_counter.queue", {"ledger"}),
        ("import exact_counter; exact_counter.testing", {"ledger", "simulator"}),
    ],
)
def test_an_import_loads_its_side_alone(code: str, loaded: set[str]) -> None:
    """Else `ledgerctl --help`, which stands below the door in the wheel, would load them all."""
    names = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert {name.partition(".")[0] for name in names} & SIDES == loaded
    if not loaded:
        assert "botocore" not in names


def test_a_side_is_imported_whole_before_a_part_of_it() -> None:
    """Rule 3 of the door."""
    for name in {*BELOW} - {"pytest_plugin"}:
        whole: set[str] = set()
        for node in ast.parse((FACE / f"{name}.py").read_text()).body:
            if isinstance(node, ast.Import):
                whole |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                side, _, part = node.module.partition(".")
                assert not part or side in whole, f"exact_counter/{name}.py: {node.module}"


TWO_THREADS = """
import sys, threading, time

begun = threading.Event()

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name in ("ledger", "reader"):
            begun.set()
            time.sleep(0.3)

def reads():
    from exact_counter import Reader

def settles():
    from exact_counter.budgets import Budgets
    from exact_counter import Compactor

sys.meta_path.insert(0, Slow())
threads = [threading.Thread(target=reads), threading.Thread(target=settles)]
threads[0].start()
begun.wait()
threads[1].start()
for thread in threads:
    thread.join()
"""


def test_two_threads_import_two_modules_of_the_door_at_once() -> None:
    command = [sys.executable, "-c", TWO_THREADS]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
