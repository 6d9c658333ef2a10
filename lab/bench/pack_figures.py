"""The figures of packs: what a change costs over its life, and what the read of a long tail costs.

Rule 1: Units are the meter's, by AWS's published rules from the items that really crossed the wire.
Rule 2: A read's CPU is only ever told as a ratio to bare boto3, taken in turns within one run; the bare client asks for
the same pages and does nothing with them.
"""

import io
import statistics
from dataclasses import dataclass
from typing import Any

from mypy_boto3_dynamodb.client import DynamoDBClient

from lab.bench.add_speed import cpu_s
from lab.bench.figures import REGION, ROUND, Bench
from lab.engines.ministack import Engine
from ledger import Change
from ledger.checks import to_datetime
from ledger.dynamo.client import CONFIG
from ledger.items import delta_pk
from ledger.lane.add import PACK_CHANGES
from ledger.message import dumps_many
from ledger.values import Lane
from reader import Reader
from service.add_from_queue.handler import AddFromQueue
from service.observe import Watch

SIZES = (10, 38, 100, PACK_CHANGES)
COUNTER = "hot"
LANE = Lane(REGION, 0, COUNTER)
BEHIND_S = 3_600.0
QUEUED_PER_S = 1_000
BATCH, WINDOW_S = 100, 1
"""Messages that the function is handed, and how long they are waited for."""

MESSAGES = (1, 250)
"""Changes in a message: of a producer that knows one at a time, and of one that knows many."""


def write_units(engine: Engine, each: int, changes: int = 2 * ROUND) -> float:
    """Of a change over its whole life, put, folded, settled and cleaned, with so many in each pack."""
    bench = Bench(engine, f"bench-packs-{each}")
    for some in (changes // 2, changes - changes // 2):
        bench.write(COUNTER, some, each=each, pack=True)
        bench.compact(COUNTER)
    _check(bench.reader, changes)
    return bench.cost("ledger", "compactor").write_units / changes


def queued_units(engine: Engine, each: int, seconds: int = 120) -> float:
    """Of a change of one counter that comes through SQS with 1,000 others a second, `each` in a message.

    The function's own handler gets batches as serverless.yml has them, and the lane is visited every minute. Marks and
    the requests of SQS are no units of the table's.
    """
    bench = Bench(engine, f"bench-queued-{each}")
    batch = min(BATCH * each, QUEUED_PER_S * WINDOW_S)
    watch = Watch.here("bench", io.StringIO())
    handle = AddFromQueue(bench.ledger, watch, pack=True)
    changes = seconds * QUEUED_PER_S
    for start in range(0, changes, batch):
        asked = [_queued(bench, n) for n in range(start, min(start + batch, changes))]
        bodies = [dumps_many(asked[i : i + each]) for i in range(0, len(asked), each)]
        records = [{"messageId": str(n), "body": body, "eventSource": "aws:sqs"} for n, body in enumerate(bodies)]
        if failed := handle({"Records": records})["batchItemFailures"]:
            raise AssertionError(f"{len(failed)} messages failed")
        watch.metrics.clear_metrics()
        if (start + batch) % (60 * QUEUED_PER_S) < batch:
            bench.compact(COUNTER)
    bench.compact(COUNTER)
    _check(bench.reader, changes)
    return bench.cost("ledger", "compactor").write_units / changes


def _queued(bench: Bench, number: int) -> Change:
    """A change of 1, a millisecond after the one before."""
    bench.now_ms += 1000 // QUEUED_PER_S
    return Change(COUNTER, 1, str(number), to_datetime(bench.now_ms))


@dataclass(frozen=True, slots=True)
class TailRead:
    """A strongly consistent read of a lane with a long tail of packs, and one that may be behind.

    cpu: of the read, over a bare boto3 client's that asks for the same pages.
    """

    changes: int
    requests: int
    read_units: float
    cpu: float
    behind_requests: int
    behind_units: float


def tail_read(engine: Engine, changes: int = 100_000, rounds: int = 15) -> TailRead:
    """Packs as full as they go, above a checkpoint."""
    bench = Bench(engine, "bench-tail")
    bench.write(COUNTER, PACK_CHANGES, each=PACK_CHANGES, pack=True)
    bench.compact(COUNTER)
    bench.write(COUNTER, changes, each=PACK_CHANGES, pack=True)
    before = bench.cost("reader")
    _check(bench.reader, changes + PACK_CHANGES)
    whole = bench.cost("reader") - before
    balance = bench.reader.read(COUNTER, behind=BEHIND_S)
    if (balance.value, balance.pending) != (PACK_CHANGES, 0):
        raise AssertionError(f"a read of the checkpoint alone says {balance}")
    behind = bench.cost("reader") - before - whole
    cpu = _over_bare(bench, engine, changes + PACK_CHANGES, rounds)
    return TailRead(changes, whole.requests, whole.read_units, cpu, behind.requests, behind.read_units)


def _over_bare(bench: Bench, engine: Engine, value: int, rounds: int) -> float:
    reader = Reader(bench.settings, client=engine.client(REGION, CONFIG))
    bare = engine.client(REGION, CONFIG)
    turns = [
        (cpu_s(lambda: _check(reader, value)), cpu_s(lambda: _query(bare, bench.settings.table)))
        for _ in range(rounds + 1)
    ]
    return statistics.median(ours / theirs for ours, theirs in turns[1:])


def _check(reader: Reader, value: int) -> None:
    found = reader.read(COUNTER).value
    if found != value:
        raise AssertionError(f"the counter reads {found}, but it has {value} changes of 1")


def _query(client: DynamoDBClient, table: str) -> None:
    """The pages of the lane's items, of which a clean has left the tail."""
    values, start = {":pk": {"S": delta_pk(LANE)}}, dict[str, Any]()
    while True:
        page: Any = client.query(
            TableName=table,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues=values,
            ConsistentRead=True,
            **start,
        )
        if "LastEvaluatedKey" not in page:
            return
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
