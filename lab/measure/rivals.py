"""The packages that others use, beside this library: what a change takes, and how often it counts
when something fails. A row for each, of a process of its own.

Rule 1: Callers send a change with the same key until they have an answer. Of all requests whose
answer may be lost, or after which the process may die, the one counts that does most harm. A dead
process sends nothing any more.
Rule 2: A rival that fails has a row that says so, and the others go on. A row of this library must
count every change once, whatever is lost or dies; any row that sent nothing is wrong, and so is a
plain ADD that counts once, because then nothing was lost and no process died.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import boto3

from lab.engines.ministack import ENVIRONMENT, Engine
from lab.measure.figure import cpu_ratio, one_by_one, put_of
from lab.measure.ways import APART, PLAIN, REGION, WAYS, Died, Way, Wire

FOLDER = f"{sys.prefix}/rivals"
"""The folder where `make` puts the packages of APART."""

TIMEOUT_S = 300
OPS, EACH = 40, 20
# a caller without an answer waits until an invocation of LEFT_MS is surely over
TRIES, WAIT_S = 8, 0.3
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
    code = f"from lab.measure.rivals import main; main({name!r}, *{given!r})"
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


def main(name: str, url: str, table: str, ids: str, rounds: int) -> None:
    """In the process of a row: measure its way, and print what was found as JSON."""
    wire = Wire(url, table, ids)
    way = WAYS[name](wire)
    print(json.dumps(_taken(wire, way) | {"cpu": _cpu(wire, way, rounds)} | _harm(wire, way)))


def _taken(wire: Wire, way: Way) -> dict[str, float]:
    """The requests and units of a change of a counter that has changes already."""
    before = {}
    for number in range(2 * OPS):
        if number == OPS:
            before = {"requests": wire.sent, **wire.units}
        way.add("busy", f"busy-{number}")
        time.sleep(0.003)  # so that time goes on, as where changes come one by one
    return {
        kind: (now - before[kind]) / OPS / way.changes
        for kind, now in {"requests": wire.sent, **wire.units}.items()
    }


def _cpu(wire: Wire, way: Way, rounds: int) -> float:
    """The CPU of a change over that of a bare put_item, measured in turns."""
    bare, numbers = boto3.client("dynamodb", region_name=REGION, endpoint_url=wire.url), count()

    def add(keys: Sequence[str]) -> int:
        return one_by_one(lambda key: way.add("cpu", key))(keys) * way.changes

    def put(key: str) -> None:
        item = {"pk": {"S": "put"}, "sk": {"S": key}, "n": {"N": "1"}}
        bare.put_item(**put_of(item, wire.table))

    keys = lambda: [f"cpu-{next(numbers)}" for _ in range(EACH)]  # noqa: E731
    return cpu_ratio(rounds, add, one_by_one(put), keys)


def _harm(wire: Wire, way: Way) -> dict[str, float]:
    """How often one change counts, by fault: the most harm of any request."""
    found = {"again": [_counted(wire, way, "again", twice=True)]}
    requests = _requests(wire, way)
    for fault in ("lose", "die"):
        found[fault] = [
            _counted(wire, way, f"{fault}-{number}", fault, number) for number in range(requests)
        ]
    return {
        fault: max(counted, key=lambda times: abs(times - 1)) for fault, counted in found.items()
    }


def _requests(wire: Wire, way: Way) -> int:
    way.add("sent", "first")
    before = wire.sent
    way.add("sent", "second")
    return wire.sent - before


def _counted(
    wire: Wire, way: Way, counter: str, fault: str = "", number: int = 0, *, twice: bool = False
) -> float:
    """How often the second change of a new counter counts.

    fault: `lose` or `die`, at the request of that number.
    """
    way.add(counter, f"{counter}-first")
    wire.sent, key = 0, f"{counter}-second"
    if fault:
        setattr(wire, fault, number)
    for _ in range(TRIES):
        try:
            way.add(counter, key)
            break
        except (Died, Exception):
            time.sleep(WAIT_S)
        finally:
            wire.lose = wire.die = -1
    else:
        raise AssertionError(f"{counter}: no answer in {TRIES} tries")
    if twice:
        way.add(counter, key)
    return way.value(counter) / way.changes - 1
