"""Mutation testing: mutmut changes the protocol files and the codec in small ways, and the tests must notice each.

Rule 1: A copy of the tree is changed, never the tree.
Rule 2: A mutant that survives is either a missing test or stands in `equivalent.toml` with the reason why it changes no
answer.
Rule 3: What stands there and does not survive any more is an error, so the list cannot rot. What is mutated and by
which tests it must be killed: [tool.mutmut] in pyproject.toml.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
COPIED = ("ledger", "reader", "compactor", "tests", "pyproject.toml")
MUTMUT = Path(sys.executable).with_name("mutmut")
CHILDREN = 2

SURVIVED = (0, 5, 33)  # exit codes of the tests of one mutant: they passed, or there was none to run
TIMED_OUT = (-24, 24, 36, 152, 255)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A line, or some, of a function as it stands, and as it was changed."""

    file: str
    function: str
    was: str
    now: str


def main() -> None:
    """Run the mutants of some files (default: all), and tell of each file and of every survivor without a reason."""
    parser = argparse.ArgumentParser(description="Mutation testing of the protocol files and the codec.")
    parser.add_argument("files", nargs="*", help="such as compactor/fold.py; default: all")
    chosen: list[str] = parser.parse_args().files
    mutated: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mutmut"]["only_mutate"]
    if wrong := set(chosen) - set(mutated):
        sys.exit(f"not mutated: {', '.join(sorted(wrong))}; these are: {', '.join(mutated)}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        bad, line = judge(Path(folder), chosen or mutated)
    print(f"{line}, in {time.monotonic() - began:,.0f} s")
    sys.exit(1 if bad else 0)


def judge(folder: Path, files: list[str]) -> tuple[int, str]:
    """Run the mutants of `files` in a copy in `folder`; the number of things wrong, and the line of result."""
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    config = folder / "pyproject.toml"  # mutmut else makes the mutants of all files, and follows them through all tests
    config.write_text(re.sub(r"(?s)(only_mutate = )\[.*?\n\]", rf"\1{json.dumps(files)}", config.read_text("utf-8")))
    # Names, also of all files: only then does mutmut first run the tests by their ids, and fail when pytest does not
    # find one; else every mutant that such a test reaches would pass for killed.
    names = [f"{file.removesuffix('.py').replace('/', '.')}.*" for file in files]
    mutmut(folder, "run", "--max-children", str(CHILDREN), *names)
    reasons = equivalents(files)
    bad = total = killed = timed_out = explained = 0
    for file in files:
        codes: dict[str, int | None] = json.loads((folder / "mutants" / f"{file}.meta").read_text())["exit_code_by_key"]
        alive = {name: shown(folder, file, name) for name, code in codes.items() if code in SURVIVED}
        late = [shown(folder, file, name) for name, code in codes.items() if code in TIMED_OUT]
        unexplained = [mutant for mutant in alive.values() if mutant not in reasons]
        stale = [m for m in reasons if m.file == file and m not in {*alive.values(), *late}]
        unrun = [name for name, code in codes.items() if code is None]
        print(f"{file:24}{len(codes):6} mutants{len(codes) - len(alive):6} killed{len(alive):5} survived", flush=True)
        for mutant in unexplained:
            print(f"    SURVIVED, in {mutant.function}:\n{indented('- ', mutant.was)}\n{indented('+ ', mutant.now)}")
        for mutant in stale:
            print(f"    LISTED, but does not survive, in {mutant.function}:\n{indented('+ ', mutant.now)}")
        for name in unrun:
            print(f"    NOT RUN: {name}")
        bad += len(unexplained) + len(stale) + len(unrun)
        total, killed = total + len(codes), killed + len(codes) - len(alive) - len(unrun)
        timed_out += len(late)
        explained += len(alive) - len(unexplained)
    share = 100 * killed / max(1, total - explained)
    return bad, (
        f"{total:,} mutants of {len(files)} files: {explained} equivalent, {killed:,} of the other "
        f"{total - explained:,} killed ({share:.1f} %; {timed_out} by a time-out)"
    )


def equivalents(files: list[str]) -> set[Mutant]:
    """The listed mutants of `files`. Raises ValueError for one without a reason, and one listed twice."""
    listed: set[Mutant] = set()
    for entry in tomllib.loads(EQUIVALENT.read_text("utf-8"))["mutant"]:
        why = entry.pop("why")
        mutant = Mutant(**entry)
        if not why or mutant in listed:
            raise ValueError(f"no reason, or listed twice: {mutant}")
        listed.add(mutant)
    return {mutant for mutant in listed if mutant.file in files}


def mutmut(folder: Path, *arguments: str) -> str:
    """What mutmut prints. Raises SystemExit with it when mutmut fails."""
    done = subprocess.run(
        [str(MUTMUT), *arguments],
        cwd=folder,
        env={**os.environ, "CI": "1", "PYTHONDONTWRITEBYTECODE": "1"},  # CI: hypothesis draws the same every time
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = re.sub(r"[\u2800-\u28ff] [^\r\n]*[\r\n]+", "", done.stdout + done.stderr)  # what turns while it works
        sys.exit(f"mutmut {arguments[0]} failed:\n{said[-4_000:]}")
    return done.stdout


def shown(folder: Path, file: str, name: str) -> Mutant:
    """The mutant that mutmut calls `name`: compactor.clean.x_clean__mutmut_7, or ...xǁReportǁof__mutmut_1."""
    function = name.rpartition(".")[2].partition("__mutmut_")[0].removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
    lines = mutmut(folder, "show", name).splitlines()
    was = [line[1:].strip() for line in lines if line.startswith("-") and not line.startswith("---")]
    now = [line[1:].strip() for line in lines if line.startswith("+") and not line.startswith("+++")]
    return Mutant(file, function, "\n".join(was), "\n".join(now))


def indented(mark: str, text: str) -> str:
    return "\n".join(f"      {mark}{line}" for line in text.splitlines() or [""])


if __name__ == "__main__":
    main()
