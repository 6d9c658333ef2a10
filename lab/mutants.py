"""A sample of mutants, drawn by a seed: mutmut changes a line of the code in a small way, and the tests must notice.

Rule 1: A copy of the tree is changed, never the tree.
Rule 2: A mutant is a text of one function and what stands there instead, so a list that was kept finds its mutants
again after the function has moved to another file. One whose text stands nowhere any more is printed as gone.
Rule 3: Only the tests that run the changed lines are asked; a line that no test runs is printed as such.
Rule 4: What an error says is not mutated ([tool.mutmut] in pyproject.toml); that it is raised, is.
"""

import argparse
import ast
import difflib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import tomllib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import coverage
from libcst import CSTNode, FunctionDef, Module
from mutmut.mutation.file_mutation import create_mutations

ROOT = Path(__file__).parents[1]
MUTATED = ("ledger", "reader", "compactor", "service")
TESTS = ("tests/ledger", "tests/reader", "tests/compactor", "tests/service")
LEFT_BEHIND = (
    *(".git", ".venv", "node_modules", "build", "__pycache__", ".hypothesis"),
    *(".coverage*", "*_cache", "mutants-*"),
)
FAILURES_MAX = 4
MUTANT_MAX_S = 1_200
LOOPS = ("-o", "faulthandler_timeout=300", "-o", "faulthandler_exit_on_timeout=true")
"""A mutant that loops is found by the first test that it keeps, not by the time-out of all."""

AT_ONCE = 2
LEAST = 0.9
"""So many of a sample must be killed: texts of logs survive, and what changes nothing does."""

CHOSEN = "mutants-chosen.txt"
PASSED, FAILED, INTERRUPTED, UNKNOWN_TEST = 0, 1, 2, 4  # exit codes of pytest; the last two: a module is not imported

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
    judge(sample, chosen.tests.split())
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


def judge(sample: Sequence[Mutant], tests: Sequence[str]) -> None:
    """Give every mutant its outcome: first all tests run once, to see which run which lines and which pass."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        clean = Path(folder, "clean")
        shutil.copytree(ROOT, clean, ignore=shutil.ignore_patterns(*LEFT_BEHIND))
        places = [place(clean, mutant) for mutant in sample]
        tests_of = covered(clean, tests, {where[0] for where in places if where})

        def run(number: int) -> None:
            mutant, where = sample[number], places[number]
            reaching = tests_of(where) if where else []
            if where is None or not reaching:
                mutant.outcome, mutant.by = UNREACHED if where else GONE, []
            else:
                _try(mutant, where, clean, Path(folder, str(number)), reaching)
            print(f"{mutant.outcome:14} {mutant.file} {mutant.function} {', '.join(mutant.by[:2])}", flush=True)
            if mutant.outcome not in (KILLED, TIMED_OUT):
                print(textwrap.indent(mutant.was, "    - ") + "\n" + textwrap.indent(mutant.now, "    + "), flush=True)

        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(run, range(len(sample))))


def place(folder: Path, mutant: Mutant) -> Where | None:
    """Where a mutant's text stands: in its own file, else in the first that has it."""
    everywhere = [path for room in MUTATED for path in sorted((folder / room).rglob("*.py"))]
    paths = sorted(everywhere, key=lambda path: path != folder / mutant.file)
    found = ((str(path.relative_to(folder)), *lines) for path in paths for lines in _in_file(path, mutant))
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


def covered(folder: Path, tests: Sequence[str], files: Iterable[str]) -> Callable[[Where], list[str]]:
    """Which passing tests run which lines of `files`: all tests run once, by coverage's contexts."""
    settings = folder / "mutants.coveragerc"
    settings.write_text("[run]\nrelative_files = True\ninclude =\n  " + "\n  ".join(sorted(files)) + "\n", "utf-8")
    options = ["--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report=", f"--numprocesses={AT_ONCE}"]
    done, failed = _pytest(folder, [*options, *tests])
    if done.returncode in (INTERRUPTED, UNKNOWN_TEST):
        sys.exit(done.stdout[-2_000:])
    print(*failed, f"{done.stdout.splitlines()[-1]} (without a mutant)", flush=True)
    data = coverage.CoverageData(str(folder / ".coverage"))
    data.read()
    contexts = {path: data.contexts_by_lineno(path) for path in data.measured_files()}

    def tests_of(where: Where) -> list[str]:
        file, first, last = where
        lines = contexts.get(file, {})
        names = {name.partition("|")[0] for line in range(first, last + 1) for name in lines.get(line, ())}
        return sorted(names - {*failed, ""})

    return tests_of


def _try(mutant: Mutant, where: Where, clean: Path, folder: Path, tests: list[str]) -> None:
    shutil.copytree(clean, folder, ignore=shutil.ignore_patterns(*LEFT_BEHIND))
    file, first, last = where
    mutated = folder / file
    lines = mutated.read_text("utf-8").splitlines()
    margin = len(lines[first - 1]) - len(lines[first - 1].lstrip())
    shift = margin - (len(mutant.was) - len(mutant.was.lstrip()))
    lines[first - 1 : last] = [" " * shift + line if shift > 0 else line[-shift:] for line in mutant.now.splitlines()]
    mutated.write_text("\n".join(lines) + "\n", "utf-8")
    try:
        (folder / CHOSEN).write_text("\n".join(tests), "utf-8")
        done, mutant.by = _pytest(folder, [*LOOPS, f"--maxfail={FAILURES_MAX}", f"@{CHOSEN}"])
        mutant.outcome = SURVIVED if done.returncode == PASSED else KILLED
    except subprocess.TimeoutExpired:
        mutant.outcome, mutant.by = TIMED_OUT, []
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pytest(folder: Path, options: Sequence[str]) -> tuple["subprocess.CompletedProcess[str]", list[str]]:
    """Run pytest in `folder`, and what failed: tests, and modules that cannot be imported."""
    quiet = ["-q", "-rfE", "--tb=no", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *quiet, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=MUTANT_MAX_S,
    )
    if done.returncode not in (PASSED, FAILED, INTERRUPTED, UNKNOWN_TEST):
        sys.exit((done.stdout + done.stderr)[-2_000:])
    return done, sorted({*re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)})


if __name__ == "__main__":
    main()
