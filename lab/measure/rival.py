"""One rival, in a process of its own: what a change takes, and how often it counts when something
fails.

Rule 1: Callers send a change with the same key until they have an answer. Of all requests whose
answer may be lost, or after which the process may die, the one counts that does most harm. A dead
process sends nothing any more.
"""

import json
import statistics
import time
from itertools import count
from typing import Any
from uuid import uuid4

import boto3

from lab.measure.ways import REGION, WAYS, Died, Way, Wire

OPS, EACH = 40, 20
# a caller without an answer waits until an invocation of LEFT_MS is surely over
TRIES, WAIT_S = 8, 0.3


def main(name: str, url: str, table: str, ids: str, rounds: int) -> None:
    """Measure a way, and print what was found as JSON."""
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
    bare, numbers, ratios = (
        boto3.client("dynamodb", region_name=REGION, endpoint_url=wire.url),
        count(),
        [],
    )
    for _ in range(rounds + 1):
        taken = []
        for call, changes in ((way.add, way.changes), (lambda *_: _put(bare, wire.table), 1)):
            began = time.process_time()
            for _ in range(EACH):
                call("cpu", f"cpu-{next(numbers)}")
            taken.append((time.process_time() - began) / changes)
        ratios.append(taken[0] / taken[1])
    return statistics.median(ratios[1:])


def _put(client: Any, table: str) -> None:
    condition = {
        "ConditionExpression": "attribute_not_exists(pk)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    client.put_item(
        TableName=table,
        Item={"pk": {"S": "put"}, "sk": {"S": f"{uuid4()}"}, "n": {"N": "1"}},
        **condition,
    )


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
