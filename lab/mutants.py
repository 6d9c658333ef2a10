"""A sample of mutants: mutmut changes a line in a small way, and the tests must notice.

Rule 1: No file is changed. A pytest that has collected its tests forks, and in the fork the
functions of the mutated text get their new code. What a function made while modules were imported
stays as it was.
Rule 2: Only the tests that run the changed lines are run; a line that no test runs is printed as
such.
Rule 3: What an error says is not mutated ([tool.mutmut] in pyproject.toml); that it is raised, is.
"""

import difflib
import gc
import importlib
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
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Annotated, Any, cast

import coverage
import pytest
import typer
from libcst import Module
from mutmut.mutation.file_mutation import create_mutations

ROOT = Path(__file__).parents[1]
MUTATED = ("ledger", "reader", "compactor", "service")
TESTS = (
    "tests/ledger",
    "tests/reader",
    "tests/compactor",
    "tests/service",
    "tests/budgets",
    "tests/contract",
)
CPU_MAX_S, WALL_MAX_S = 120, 600
"""A mutant that loops for so long, or waits for so long, is found, too."""

LEAST = 0.9
"""So many of a sample must be killed: texts of logs survive, and what changes nothing does."""

SURVIVED, KILLED, TIMED_OUT, UNREACHED = "survived", "killed", "timed out", "run by no test"


@dataclass(frozen=True)
class Mutant:
    """Lines of a function as they stand, from `first` to `last`, and as they were changed; code:
    of the whole file.
    """

    file: str
    first: int
    last: int
    was: str
    now: str
    code: str

    @property
    def path(self) -> str:
        return str(ROOT / self.file)


def main(
    files: Annotated[
        list[str] | None, typer.Argument(help=f"Files to mutate; else all of {', '.join(MUTATED)}.")
    ] = None,
    sample: Annotated[int, typer.Option(help="How many mutants to try.")] = 80,
    seed: Annotated[int, typer.Option(help="Decides which ones.")] = 27,
    tests: Annotated[str, typer.Option(help="Folders and files of tests.")] = " ".join(TESTS),
) -> None:
    """Change a few lines of the code, one at a time, run the tests that reach it, and print the
    changes that no test notices.
    """
    began = time.monotonic()
    files = files or [
        str(f.relative_to(ROOT)) for room in MUTATED for f in sorted((ROOT / room).rglob("*.py"))
    ]
    judge = Judge(drawn(files, seed, sample))
    pytest.main(["-s", "-p", "no:terminal", *tests.split()], plugins=[judge])
    if judge.outcomes.total() < len(judge.sample):
        sys.exit("error: pytest could not collect the tests; run it to see why.")
    killed = judge.outcomes[KILLED] + judge.outcomes[TIMED_OUT]
    print(f"{killed} of {len(judge.sample)} mutants killed, in {time.monotonic() - began:,.0f} s")
    sys.exit(killed < LEAST * len(judge.sample))


def drawn(files: Sequence[str], seed: int, most: int) -> list[Mutant]:
    """Up to `most` of what mutmut makes of the functions of `files`, but for texts of errors."""
    settings: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    left_out = re.compile("|".join(settings["tool"]["mutmut"]["do_not_mutate_patterns"]))
    mutations = []
    for file in files:
        module, found, _, _ = create_mutations(file, (ROOT / file).read_text("utf-8"))
        mutations += [
            (file, module, each)
            for each in found
            if each.contained_by_top_level_function is not None
        ]
    random.Random(seed).shuffle(mutations)
    sample: list[Mutant] = []
    for file, module, mutation in mutations:
        if len(sample) == most:
            break
        after = cast(
            "Module", module.deep_replace(mutation.original_node, mutation.mutated_node)
        ).code
        was, now = module.code.splitlines(), after.splitlines()
        blocks = [
            b
            for b in difflib.SequenceMatcher(None, was, now, autojunk=False).get_opcodes()
            if b[0] != "equal"
        ]
        if blocks:
            (_, first, _, now_first, _), (_, _, last, _, now_last) = blocks[0], blocks[-1]
            lines = "\n".join(was[first:last]), "\n".join(now[now_first:now_last])
            sample += (
                [] if left_out.search(lines[0]) else [Mutant(file, first + 1, last, *lines, after)]
            )
    print(
        f"{len(mutations):,} mutants of {len(files)} files; {len(sample)} drawn by seed {seed}",
        flush=True,
    )
    return sample


class Judge:
    """A plugin of pytest that gives every mutant its outcome, in the place of one run of the
    tests.
    """

    def __init__(self, sample: Sequence[Mutant]) -> None:
        self.sample = sample
        self.outcomes = Counter[str]()
        self._failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        failing, tests_of = in_a_fork(lambda: self._covered(session.items))
        print(
            f"{len(session.items):,} tests; without a mutant {len(failing)} fail",
            *failing,
            flush=True,
        )
        for mutant, tests in zip(self.sample, tests_of, strict=True):
            outcome, failed = in_a_fork(
                partial(self._tried, mutant, [session.items[number] for number in tests])
            )
            self.outcomes[outcome] += 1
            print(f"{outcome:14} {mutant.file}:{mutant.first} {failed}", flush=True)
            if outcome in (SURVIVED, UNREACHED):
                print(
                    textwrap.indent(f"{mutant.was}\n", "    - ")
                    + textwrap.indent(mutant.now, "    + "),
                    flush=True,
                )
        return True

    def _covered(self, items: Sequence[pytest.Item]) -> tuple[list[str], list[list[int]]]:
        """The tests that fail as it is; of each mutant the numbers of the others that run its
        lines.
        """
        measured = coverage.Coverage(
            data_file=None, config_file=False, include=[each.path for each in self.sample]
        )
        measured.start()
        for number, item in enumerate(items):
            measured.switch_context(str(number))
            ask(item, items[number + 1] if number + 1 < len(items) else None)
        measured.stop()
        data = measured.get_data()
        lines_of = {file: data.contexts_by_lineno(file) for file in data.measured_files()}
        left_out = {
            "",
            *(str(number) for number, item in enumerate(items) if item.nodeid in self._failed),
        }
        tests_of = []
        for mutant in self.sample:
            lines = lines_of.get(mutant.path, {})
            found = {
                each for n in range(mutant.first, mutant.last + 1) for each in lines.get(n, ())
            }
            tests_of.append(sorted(map(int, found - left_out)))
        return self._failed, tests_of

    def _tried(self, mutant: Mutant, items: Sequence[pytest.Item]) -> tuple[str, str]:
        """What becomes of it, and the test that fails; none runs it, also where nothing can take
        the code.
        """
        if not items or not plant(mutant):
            return UNREACHED, ""
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_MAX_S, CPU_MAX_S))
        signal.alarm(WALL_MAX_S)
        for item, following in zip(items, [*items[1:], None], strict=True):
            ask(item, following)
            if self._failed:
                # else an engine that a test began outlives this
                item.session._setupstate.teardown_exact(None)
                return KILLED, self._failed[0]
        return SURVIVED, ""


def ask(item: pytest.Item, following: pytest.Item | None) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def in_a_fork(work: Callable[[], Any]) -> Any:
    """What some work answers in a process of its own, which says nothing else; TIMED_OUT, where
    that was ended.
    """
    with tempfile.TemporaryFile("w+") as answer:
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            answer.seek(0)
            return json.loads(answer.read() or json.dumps((TIMED_OUT, "")))
        try:
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, sys.stdout.fileno())
            os.dup2(silent, sys.stderr.fileno())
            json.dump(work(), answer)
            answer.flush()
        finally:
            os._exit(0)


def plant(mutant: Mutant) -> bool:
    """Give the functions of a file the code that they would have; whether any has another one
    now.
    """
    now = dict(codes(compile(mutant.code, mutant.path, "exec")))
    was = dict(codes(compile(Path(mutant.path).read_text("utf-8"), mutant.path, "exec")))
    planted = False
    with suppress(Exception):  # a file that only a function imports is not there yet
        importlib.import_module(mutant.file.removesuffix(".py").replace("/", "."))
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == mutant.path:
            name = function.__code__.co_qualname
            if name in now and now[name] != was.get(name):
                code = now[name]
                # a function keeps its closure, also where the mutant needs none
                if not code.co_freevars:
                    code = code.replace(co_freevars=function.__code__.co_freevars)
                # it would close over other variables: this one cannot take it
                with suppress(ValueError):
                    function.__code__ = code
                    planted = True
    return planted


def codes(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    """That of every function in it, by its qualified name."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner.co_qualname, inner
            yield from codes(inner)


if __name__ == "__main__":
    typer.run(main)
