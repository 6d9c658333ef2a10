"""A sample of mutants, drawn by a seed: mutmut changes a line of the code in a small way, and the tests must notice.

Rule 1: No file is changed. A pytest that has collected its tests forks, and in the fork the functions of the mutated
text get their new code. What a function made while modules were imported stays as it was.
Rule 2: A mutant is a text of one function and what stands there instead, so a list that was kept finds its mutants
again after the function has moved to another file. One whose text stands nowhere any more is printed as gone.
Rule 3: Only the tests that run the changed lines are asked; a line that no test runs is printed as such.
Rule 4: What an error says is not mutated ([tool.mutmut] in pyproject.toml); that it is raised, is.
"""

import argparse
import ast
import difflib
import gc
import json
import os
import random
import re
import resource
import signal
import sys
import tempfile
import textwrap
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, TextIO, cast

import coverage
import pytest
from libcst import CSTNode, FunctionDef, Module
from mutmut.mutation.file_mutation import create_mutations

ROOT = Path(__file__).parents[1]
MUTATED = ("ledger", "reader", "compactor", "service")
TESTS = ("tests/ledger", "tests/reader", "tests/compactor", "tests/service", "tests/budgets", "tests/contract")
CPU_MAX_S, WALL_MAX_S = 120, 600
"""A mutant that loops for so long, or waits for so long, is found, too."""

AT_ONCE = 2
LEAST = 0.9
"""So many of a sample must be killed: texts of logs survive, and what changes nothing does."""

SURVIVED, KILLED, TIMED_OUT, UNREACHED, GONE = "survived", "killed", "timed out", "run by no test", "gone"

Where = tuple[str, int, int]
"""A file, and the first and last line of what is changed there."""


@dataclass
class Mutant:
    """Lines of a function as they stand, and as they were changed; what became of it, and which tests failed."""

    file: str
    function: str
    was: str
    now: str
    outcome: str = ""
    by: list[str] = field(default_factory=list)


def main() -> None:
    """Draw the mutants, or take those of a list; run their tests; print what is not killed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("files", nargs="*", help=f"files to mutate; default: all of {', '.join(MUTATED)}")
    parser.add_argument("--sample", type=int, default=80, help="how many are drawn (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=27, help="what draws them (default: %(default)s)")
    parser.add_argument("--tests", default=" ".join(TESTS), help="folders and files of tests (default: %(default)s)")
    parser.add_argument("--from", dest="listed", type=Path, help="take the mutants of this list")
    parser.add_argument("--out", type=Path, help="write the list with its outcomes")
    chosen = parser.parse_args()
    began = time.monotonic()
    files = chosen.files or [str(f.relative_to(ROOT)) for room in MUTATED for f in sorted((ROOT / room).rglob("*.py"))]
    if chosen.listed:
        sample = [Mutant(**entry) for entry in json.loads(chosen.listed.read_text("utf-8"))]
    else:
        sample = drawn(files, chosen.seed, chosen.sample)
    pytest.main(["-s", "-p", "no:terminal", *chosen.tests.split()], plugins=[Judge(sample)])
    if not all(mutant.outcome for mutant in sample):
        sys.exit("error: pytest could not collect the tests; run it to see why.")
    if chosen.out:
        chosen.out.write_text(json.dumps([asdict(m) for m in sample], indent=1, ensure_ascii=False) + "\n", "utf-8")
    killed = sum(m.outcome in (KILLED, TIMED_OUT) for m in sample)
    print(f"{killed} of {len(sample)} mutants killed, in {time.monotonic() - began:,.0f} s")
    sys.exit(killed < LEAST * len(sample))


def drawn(files: Sequence[str], seed: int, most: int) -> list[Mutant]:
    """Up to `most` of what mutmut makes of the functions of `files`, but for texts of errors."""
    settings: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    left_out = re.compile("|".join(settings["tool"]["mutmut"]["do_not_mutate_patterns"]))
    mutations = [(file, *mutation) for file in files for mutation in _mutations(file)]
    random.Random(seed).shuffle(mutations)
    sample: list[Mutant] = []
    for file, function, code, mutate in mutations:
        if len(sample) == most:
            break
        changed = _changed(code, mutate())
        if changed and not left_out.search(changed[0]):
            sample.append(Mutant(file, function, *changed))
    print(f"{len(mutations):,} mutants of {len(files)} files; {len(sample)} drawn by seed {seed}", flush=True)
    return sample


def _mutations(file: str) -> Iterable[tuple[str, str, Callable[[], str]]]:
    """The name of the function, the file's code, and what makes the mutated code."""
    code = (ROOT / file).read_text("utf-8")
    module, mutations, _, _ = create_mutations(file, code)
    for mutation in mutations:
        inside = mutation.contained_by_top_level_function
        if isinstance(inside, FunctionDef):
            nodes = (mutation.original_node, mutation.mutated_node)
            yield inside.name.value, code, partial(_mutated, module, *nodes)


def _mutated(module: Module, original: CSTNode, mutated: CSTNode) -> str:
    return cast("Module", module.deep_replace(original, mutated)).code


def _changed(before: str, after: str) -> tuple[str, str] | None:
    was, now = before.splitlines(), after.splitlines()
    blocks = [b for b in difflib.SequenceMatcher(None, was, now, autojunk=False).get_opcodes() if b[0] != "equal"]
    if not blocks:
        return None
    first, last = blocks[0], blocks[-1]
    return "\n".join(was[first[1] : last[2]]), "\n".join(now[first[3] : last[4]])


class Judge:
    """A plugin of pytest that gives every mutant its outcome, in the place of one run of the tests."""

    def __init__(self, sample: Sequence[Mutant]) -> None:
        self._sample = sample
        self._failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        places = [*map(place, self._sample)]
        child, answer = forked(lambda: self._covered(session.items, places))
        os.waitpid(child, 0)
        failing, tests_of = answer_of(answer)
        print(f"{len(session.items):,} tests; without a mutant {len(failing)} fail", *failing, flush=True)
        running: dict[int, tuple[Mutant, TextIO]] = {}
        for mutant, where, tests in zip(self._sample, places, tests_of, strict=True):
            if where is None or not tests:
                report(mutant, UNREACHED if where else GONE, [])
                continue
            child, answer = forked(partial(self._found, mutant, where, [session.items[number] for number in tests]))
            running[child] = mutant, answer
            if len(running) == AT_ONCE:
                self._end(*running.pop(os.wait()[0]))
        while running:
            self._end(*running.pop(os.wait()[0]))
        return True

    def _covered(self, items: Sequence[pytest.Item], places: Sequence[Where | None]) -> tuple[list[str], list[Any]]:
        """The tests that fail as it is; of each place the numbers of the others that run it."""
        measured = coverage.Coverage(data_file=None, config_file=False, include=[w[0] for w in places if w])
        measured.start()
        for number, item in enumerate(items):
            measured.switch_context(str(number))
            ask(item, items[number + 1] if number + 1 < len(items) else None)
        measured.stop()
        data = measured.get_data()
        lines_of = {file: data.contexts_by_lineno(file) for file in data.measured_files()}
        failing = {str(number) for number, item in enumerate(items) if item.nodeid in self._failed}

        def tests_of(where: Where) -> list[int]:
            file, first, last = where
            lines = lines_of.get(file, {})
            return sorted(
                map(int, {each for n in range(first, last + 1) for each in lines.get(n, ())} - {*failing, ""})
            )

        return self._failed, [tests_of(where) if where else [] for where in places]

    def _found(self, mutant: Mutant, where: Where, items: Sequence[pytest.Item]) -> list[str] | str:
        """The tests that failed, the first one last; UNREACHED where nothing that was imported can take the code."""
        if not plant(mutant, where):
            return UNREACHED
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_MAX_S, CPU_MAX_S))
        signal.alarm(WALL_MAX_S)
        for item, following in zip(items, [*items[1:], None], strict=True):
            ask(item, following)
            if self._failed:
                item.session._setupstate.teardown_exact(None)  # of what the others would have used
                break
        return self._failed

    def _end(self, mutant: Mutant, answer: TextIO) -> None:
        match answer_of(answer):
            case None:
                report(mutant, TIMED_OUT, [])
            case str(outcome):
                report(mutant, outcome, [])
            case found:
                report(mutant, KILLED if found else SURVIVED, found)


def ask(item: pytest.Item, following: pytest.Item | None) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def report(mutant: Mutant, outcome: str, by: list[str]) -> None:
    mutant.outcome, mutant.by = outcome, by
    print(f"{outcome:14} {mutant.file} {mutant.function} {', '.join(by)}", flush=True)
    if outcome not in (KILLED, TIMED_OUT):
        print(textwrap.indent(mutant.was, "    - ") + "\n" + textwrap.indent(mutant.now, "    + "), flush=True)


def forked(work: Callable[[], Any]) -> tuple[int, TextIO]:
    """A process that does some work, and writes down what that answers, but nothing else."""
    answer = tempfile.TemporaryFile("w+")  # noqa: SIM115 (`answer_of` closes it)
    child = os.fork()
    if child:
        return child, answer
    try:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, sys.stdout.fileno())
        os.dup2(silent, sys.stderr.fileno())
        json.dump(work(), answer)
        answer.flush()
    finally:
        os._exit(0)


def answer_of(answer: TextIO) -> Any:
    """None where the process was ended before it wrote anything."""
    with answer:
        answer.seek(0)
        return json.loads(answer.read() or "null")


def plant(mutant: Mutant, where: Where) -> bool:
    """Give the functions of a file the code that they would have; whether any has another one now."""
    file, first, last = where
    text = Path(file).read_text("utf-8")
    lines = text.splitlines()
    margin = len(lines[first - 1]) - len(lines[first - 1].lstrip())
    shift = margin - (len(mutant.was) - len(mutant.was.lstrip()))
    lines[first - 1 : last] = [" " * shift + line if shift > 0 else line[-shift:] for line in mutant.now.splitlines()]
    now = dict(codes(compile("\n".join(lines), file, "exec")))
    changed = {name for name, code in codes(compile(text, file, "exec")) if now.get(name) != code}
    planted = False
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == file:
            name = function.__code__.co_qualname
            if name in changed and name in now:
                code = now[name]
                if not code.co_freevars:  # a function keeps its closure, also where the mutant needs none
                    code = code.replace(co_freevars=function.__code__.co_freevars)
                with suppress(ValueError):  # it would close over other variables: this one cannot take it
                    function.__code__ = code
                    planted = True
    return planted


def codes(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    """That of every function in it, by its qualified name."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner.co_qualname, inner
            yield from codes(inner)


def place(mutant: Mutant) -> Where | None:
    """Where a mutant's text stands: in its own file, else in the first that has it."""
    everywhere = [path for room in MUTATED for path in sorted((ROOT / room).rglob("*.py"))]
    paths = sorted(everywhere, key=lambda path: path != ROOT / mutant.file)
    found = ((str(path), *lines) for path in paths for lines in _in_file(path, mutant))
    return next(found, None)


def _in_file(path: Path, mutant: Mutant) -> Iterable[tuple[int, int]]:
    text = path.read_text("utf-8")
    lines = [line.strip() for line in text.splitlines()]
    wanted = [line.strip() for line in mutant.was.splitlines()]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == mutant.function:
            for n in range(node.lineno - 1, node.end_lineno or node.lineno):
                if lines[n : n + len(wanted)] == wanted:
                    yield n + 1, n + len(wanted)


if __name__ == "__main__":
    main()
