"""The list of mutants that change no answer, as far as it can be held against the code without running them."""

import tomllib

import pytest

from lab.mutants.check import ROOT, Mutant, equivalents

MUTATED = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mutmut"]["only_mutate"]


@pytest.mark.parametrize("mutant", sorted(equivalents(MUTATED), key=repr), ids=lambda m: f"{m.file}:{m.now}")
def test_a_line_that_is_listed_stands_in_its_file(mutant: Mutant) -> None:
    lines = {line.strip() for line in (ROOT / mutant.file).read_text("utf-8").splitlines()}
    assert {*mutant.was.splitlines()} <= lines


def test_every_file_of_the_protocol_is_mutated() -> None:
    classes, values = {"__init__.py", "compactor.py", "reader.py", "calls.py", "aio.py", "cache.py"}, {"balance.py"}
    outside = classes | values | {"once.py"}
    files = {f"{p.parent.name}/{p.name}" for folder in ("compactor", "reader") for p in (ROOT / folder).glob("*.py")}
    assert {file for file in files if file.split("/")[1] not in outside} <= set(MUTATED)
