"""The packages that others use, beside this library: a row for each, of a process of its own
(`rival.py`).

Rule 1: A rival that fails has a row that says so, and the others go on. A row of this library must
count every change once, whatever is lost or dies; any row that sent nothing is wrong, and so is a
plain ADD that counts once, because then nothing was lost and no process died.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lab.engines.ministack import ENVIRONMENT, Engine
from lab.measure.ways import APART, PLAIN, REGION, WAYS

FOLDER = f"{sys.prefix}/rivals"
"""The folder where `make` puts the packages of APART."""

TIMEOUT_S = 300
TAKEN, HARM = ("requests", "write", "cpu"), ("again", "lose", "die")


@dataclass(frozen=True, slots=True)
class Rival:
    """found: by TAKEN, what a change takes; by HARM, how often one counts.

    failure: why nothing was found.
    """

    name: str
    found: dict[str, float] = field(default_factory=dict)
    failure: str = ""

    def mistakes(self) -> Iterator[str]:
        ours, must = self.name.startswith("this library"), 2 if self.name == PLAIN else 1
        if ours and self.failure:
            yield f"{self.name}: {self.failure}"
        for kind in TAKEN if self.found else ():
            if not self.found[kind] > 0:
                yield f"{self.name}: it took nothing, {kind}"
        for kind in HARM if self.found and (ours or self.name == PLAIN) else ():
            if self.found[kind] != must:
                yield f"{self.name}: {kind}: a change counted {self.found[kind]} times"

    def __str__(self) -> str:
        found = ", ".join(f"{kind} {number:.3g}" for kind, number in self.found.items())
        return f"{self.name:<40}{self.failure or found}"

    def cells(self) -> Sequence[str]:
        taken = [f"{self.found[kind]:.2f}" if self.found else "failed" for kind in TAKEN]
        return [
            self.name,
            *taken,
            *(f"{self.found[kind]:.0f}" if self.found else "" for kind in HARM),
        ]


def measure_rivals(engine: Engine, rounds: int) -> Iterator[Rival]:
    client = engine.client(REGION)
    for number, name in enumerate(WAYS):
        table, ids = f"rivals-{number}", f"rivals-{number}-ids"
        engine.create_table(table, REGION, client)
        client.create_table(
            TableName=ids,
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield _row(name, (engine.endpoint_url, table, ids, rounds))


def _row(name: str, given: tuple[str, str, str, int]) -> Rival:
    code = f"from lab.measure.rival import main; main({name!r}, *{given!r})"
    given_env = os.environ | ENVIRONMENT | ({"PYTHONPATH": FOLDER} if name in APART else {})
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=given_env,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return Rival(name, failure=f"FAILED: not over after {TIMEOUT_S} s")
    except subprocess.CalledProcessError as failed:
        return Rival(
            name,
            failure=f"FAILED: {(failed.stderr.strip().splitlines() or ['it said nothing'])[-1]}",
        )
    return Rival(name, json.loads(done.stdout))
