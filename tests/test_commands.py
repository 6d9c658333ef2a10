"""The commands of the checkout: how they end, what they need, and that each one that a page
shows runs somewhere.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def target(folder: Path, python: str) -> None:
    """An environment that is made, for a target to use: its Python does this instead."""
    for stamp in (folder / ".made", *(folder / name / ".made" for name in ("engine", "async"))):
        stamp.parent.mkdir(exist_ok=True)
        stamp.touch()
    program = folder / "bin" / "python"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{python}\n")
    program.chmod(0o755)


def make(name: str, folder: Path, *variables: str) -> subprocess.CompletedProcess[str]:
    command = ("make", name, f"VENV={folder}", *variables)
    # Where `make test` runs this, the inner make would speak of its folder, and take its variables.
    outer = {"MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS"}
    env = {key: value for key, value in os.environ.items() if key not in outer}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("args", "awaited", "others", "right"),
    [
        ("", 0, 0, True),
        ("", 5, 0, False),  # no test at all, and none was left out
        ("", 0, 5, False),
        ("", 1, 0, False),
        ("", 0, 1, False),
        ("-k fold", 5, 0, True),  # the half that has none
        ("-k awaited", 0, 5, True),
        ("-k nonsense", 5, 5, False),
        ("-k fold", 1, 0, False),
        ("-k fold", 5, 1, False),
        ("-k fold", 2, 5, False),
    ],
)
def test_make_test_chooses_of_either_half_and_fails_at_none(
    args: str, awaited: int, others: int, right: bool, tmp_path: Path
) -> None:
    target(tmp_path, f'[ "$PYTHONPATH" = "{tmp_path}/async" ] && exit {awaited}; exit {others}')
    done = make("test", tmp_path, *([f"ARGS={args}"] if args else []))
    assert (done.returncode == 0) is right, done.stderr


@pytest.mark.parametrize("ci", ["", "true"])
def test_a_missing_program_fails_under_ci_alone(ci: str) -> None:
    environment = {**os.environ, "CI": ci, "LEDGER_ENGINE": "/nonexistent", "PATH": ""}
    command = (
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/contract/test_engines.py",
    )
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    *_, last = done.stdout.splitlines()
    listed = [line for line in done.stdout.splitlines() if line.startswith("NOT RUN: ")]
    if ci:
        assert (done.returncode, listed) == (1, [])
        assert "10 failed" in last
        assert "Run `make dev`" in done.stdout
        assert "Put on PATH: java, mvn" in done.stdout
    else:
        assert (done.returncode, "10 skipped" in last) == (0, True)
        engine, local = listed
        assert engine.startswith("NOT RUN: the embedded DynamoDB is not installed")
        assert (
            local
            == "NOT RUN: DynamoDB Local needs a JDK and Maven. Put on PATH: java, mvn (5 tests)"
        )


def ci(steps: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The functions of .ci/run, and these steps."""
    script = ROOT / ".ci" / "run"
    functions, first_step, _ = script.read_text().partition("\nstep make help\n")
    assert first_step
    command = ["bash", "-c", f"{functions}\n{steps}", str(script)]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


ENDS = (
    'if have "make model" java nonsense; then echo played; fi; echo; echo the end; printf %s '
    '"$lacking"'
)


def test_ci_fails_without_a_program_and_lists_what_was_not_run() -> None:
    why = "NOT RUN: make model, because PATH lacks nonsense\n"
    forge, here = ci(ENDS, CI="true"), ci(ENDS, CI="")
    assert (forge.returncode, forge.stdout, forge.stderr) == (1, "", why)
    assert (here.returncode, here.stdout) == (0, f"\nthe end\n{why}")
    assert ci('if have "make help" bash; then echo played; fi', CI="true").stdout == "played\n"


def test_ci_asks_for_each_program_that_not_every_machine_has() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert re.findall(r'^if have ".*" ([a-z ]+); then$', script, re.M) == ["npm", "java mvn"]
    assert script.endswith("printf '%s' \"$lacking\"\n")


SLOW = (
    "exec 3>&1; beside slow bash -c 'echo runs; sleep 60; echo was left >&3'; "
    'until [[ -s "$scratch/slow" ]]; do sleep 0.01; done'
)


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ("beside quick true; joined quick; step true", 0),  # what ran beside has ended by itself
        ("beside quick false; joined quick; step true", 1),
        ("beside quick true; step false", 1),
        (f"{SLOW}; step true", 0),  # which nobody waits for
        (f"{SLOW}; step false", 1),
    ],
)
def test_ci_ends_as_its_steps_ended_and_leaves_nothing(
    steps: str, code: int, tmp_path: Path
) -> None:
    done = ci(steps, TMPDIR=str(tmp_path))
    assert done.returncode == code
    assert "was left" not in done.stdout
    assert list(tmp_path.iterdir()) == []


# -- what the pages and `make help` show

PAGES = ("README.md", "CONTRIBUTING.md", "docs/testing.md", "tests/README.md")
COMMAND = re.compile(r"make [a-z]|\.ci/run|python -m ")
VALUE = r"""(?:"[^"]*"|[\w./-]*\w)"""


def documented() -> set[str]:
    """Every command that they show, with its arguments; an argument alone is of the command
    before it.
    """
    found = set[str]()
    for page in PAGES:
        text = (ROOT / page).read_text()
        blocks = "\n".join(re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S))
        command = ""
        for said in (
            *blocks.splitlines(),
            *re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)),
        ):
            words = " ".join(said.partition(" #")[0].split())
            if COMMAND.match(words):
                command = words
            elif re.match(r"[A-Z]+=", words) and command.startswith("make"):
                command = f"{' '.join(command.split()[:2])} {words}"
            elif words.startswith("--") and "ARGS=--" in command:
                command = f"{' '.join(command.split()[:2])} ARGS={words}"
            else:
                continue
            found.add(command)
    for target, about in re.findall(
        r"^([a-z0-9-]+):.*## (.*)", (ROOT / "Makefile").read_text(), re.M
    ):
        given = re.findall(rf"(?:make ([a-z-]+) )?\b([A-Z0-9]+={VALUE}?)", about)
        found |= {
            f"make {target}",
            *(f"make {other or target} {argument}" for other, argument in given),
        }
    return found


ELSEWHERE = {  # what neither .ci/run nor the workflow's own steps run: a test that does
    "python -m lab.histories --seed 7": "tests/lab/histories/test_histories.py::"
    "test_a_history_can_be_read",
    "python -m tests.ledgerctl.page": "tests/ledgerctl/test_page.py::"
    "test_the_pages_sessions_are_what_the_commands_print",
    "make explore ARGS=its_name": "tests/lab/histories/test_small_casts.py::"
    "test_one_cast_is_played_by_its_name",
    # part of make check
    "make docs": "tests/test_programs.py::test_ci_starts_every_target_of_the_makefile",
    "make newest PYTHON314=": "tests/test_commands.py::"
    "test_make_newest_plays_on_the_newest_python_that_starts",
}


def played() -> list[str]:
    """The commands of .ci/run and of the workflow, as they stand there; `asked` starts a target,
    too.
    """
    script = re.sub(r"(?<!\$)#.*", "", (ROOT / ".ci" / "run").read_text())
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    commands = re.findall(
        r"(?:\bmake|\basked|GITHUB_ACTIONS) ((?:\.ci/run|[a-z0-9-]+).*)", f"{script}\n{workflow}"
    )
    return [re.sub("^make ", "", command) for command in commands]


def is_played(command: str, runs: list[str]) -> bool:
    """Whether some run is of its target, with a value for each of its variables, and all its
    options.
    """
    _, target, *_ = f"{command} ".replace(".ci/run", "make .ci/run").split(" ")
    variable = re.search(r" ([A-Z0-9]+=)(.*)", command)
    needed = [variable[1], *re.findall(r"(?<!\w)--?[a-z][a-z-]*", variable[2])] if variable else []
    return any(run.split()[0] == target and all(each in run for each in needed) for run in runs)


def test_a_command_on_a_page_is_run_with_its_arguments() -> None:
    runs, shown = played(), documented()
    assert {
        'make test ARGS="-k fold"',
        "make e2e ARGS=--breaks",
        "make mistakes ARGS=--sagas",
        ".ci/run",
    } <= shown
    assert not is_played("make test ARGS=--nonsense", runs)
    assert sorted(command for command in shown if not is_played(command, runs)) == sorted(ELSEWHERE)
    for test in ELSEWHERE.values():
        file, name = test.split("::")
        assert f"def {name}(" in (ROOT / file).read_text()


@pytest.mark.parametrize(
    ("python", "code"), [("/nonexistent", 0), (sys.executable, 0), (sys.executable, 1)]
)
def test_make_newest_plays_on_the_newest_python_that_starts(
    python: str, code: int, tmp_path: Path
) -> None:
    target(tmp_path, f'case "$*" in *--python*) echo "$*"; exit {code};; esac; echo "$*"')
    done = make("newest", tmp_path, f"PYTHON314={python}", "ARGS=tests/reader")
    here, *others = done.stdout.splitlines()
    assert here == "-m lab.newest tests/reader"
    if python == "/nonexistent":
        assert others == [
            (
                "NOT RUN on Python 3.14: none that starts is on PATH or among pyenv's versions. "
                "PYTHON314=... names one."
            )
        ]
    else:
        assert others == [f"-m lab.newest --python {python} tests/reader"]
    assert (done.returncode == 0) is (code == 0)
