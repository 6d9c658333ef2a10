"""Client CPU of an add to a limited counter, over that of a bare boto3 update_item that says the same.

Rule 1: a ratio within one run, taken in turns; the bare client has this library's Config and writes a gate of its own.
Rule 2: the bare requests are rendered before, and decide as the ledger's do; what the ledger files now and then counts.
"""

import statistics
from collections.abc import Sequence
from functools import partial
from itertools import count

from mypy_boto3_dynamodb.client import DynamoDBClient

from lab.bench.add_speed import REGION, cpu_s
from lab.engines.ministack import Engine
from ledger import Ledger, Settings
from ledger.dynamo import ask
from ledger.dynamo.ask import Operation
from ledger.dynamo.client import CONFIG
from ledger.gate.updates import decide
from ledger.limit import Limit

TABLE = "bench-limited"
LIMIT = Limit(ceiling=10**9, region=REGION)


def add_over_update(engine: Engine, rounds: int = 40, each: int = 25) -> float:
    """The median of ratios in turns."""
    engine.create_table(TABLE, REGION)
    settings = Settings(table=TABLE, region=REGION, limits={"seats:": LIMIT})
    ledger = Ledger(settings, client=engine.client(REGION, CONFIG))
    bare, numbers, ratios = engine.client(REGION, CONFIG), count(), list[float]()
    for _ in range(rounds + 1):
        ours, theirs = "seats:ours", f"seats:{next(numbers)}"  # so that nothing need be filed for the bare client
        ledger.add(theirs, 1)  # makes the gate
        asked = [_update(ledger, theirs) for _ in range(each)]
        own = cpu_s(partial(_add, ledger, ours, each))
        ratios.append(own / cpu_s(partial(_send, bare, asked)))
    return statistics.median(ratios[1:])


def _update(ledger: Ledger, counter: str) -> Operation:
    delta = ledger.prepare(counter, 1)
    return ask.operation(decide(delta.lane, LIMIT, {delta.token: 1}), TABLE)


def _add(ledger: Ledger, counter: str, each: int) -> None:
    for _ in range(each):
        ledger.add(counter, 1)


def _send(client: DynamoDBClient, asked: Sequence[Operation]) -> None:
    for each in asked:
        client.update_item(**each.arguments)
