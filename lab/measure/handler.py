"""The CPU that `add_from_queue` takes for a change, over that of reading its message as JSON.

Rule 1: the function's own handler gets batches as Lambda hands them over, and packs them into a
table in memory, so the figure has no network in it.
"""

import io
import json
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from lab.measure.figure import Figure, cpu_ratio
from lab.measure.lives import BATCH, COUNTER
from ledger import Change, Ledger, Settings
from ledger.client.message import dumps_many
from ledger.core.checks import to_datetime
from ledger.tables.memory import MemoryTable
from service.add_from_queue.handler import AddFromQueue
from service.observe import Watch

NOW_MS = 1_800_000_000_000
MOST, ROUNDS = 8, 9


def handler(small: bool) -> Iterator[Figure]:
    for each, counters in (1, 1), (100, 1), (100, 100):
        of = f"{each} in a message, {counters} counter{'s' * (counters > 1)}"
        ratio = over_json(each, counters, 1_000 if small else 10_000, 1 if small else ROUNDS)
        yield Figure(f"CPU of add_from_queue / json.loads, {of}", ratio, MOST, 1, judged=False)


def over_json(each: int, counters: int, changes: int, rounds: int) -> float:
    """The CPU of a change in the handler over `json.loads` of it, `each` in a message, of so many
    counters.
    """
    settings = Settings(table="bench", region="eu-west-1")
    ledger = Ledger(settings, table=MemoryTable(), clock=lambda: NOW_MS)
    handle = AddFromQueue(ledger, Watch.here("bench", io.StringIO()), pack=True)
    numbers = count()

    def batches() -> list[list[dict[str, Any]]]:
        """New changes, a millisecond apart, as records."""
        made = [
            Change(f"{COUNTER}:{i % counters}", 1, str(next(numbers)), to_datetime(NOW_MS - i))
            for i in range(changes)
        ]
        bodies = [dumps_many(made[i : i + each]) for i in range(0, changes, each)]
        sent = {"eventSource": "aws:sqs", "attributes": {"ApproximateReceiveCount": "1"}}
        records = [{"messageId": str(n), "body": body, **sent} for n, body in enumerate(bodies)]
        return [records[i : i + BATCH] for i in range(0, len(records), BATCH)]

    def ours(batches: Sequence[list[dict[str, Any]]]) -> int:
        for records in batches:
            if failed := handle({"Records": records})["batchItemFailures"]:
                raise AssertionError(f"{len(failed)} messages failed")
        return changes

    def bare(batches: Sequence[list[dict[str, Any]]]) -> int:
        for records in batches:
            for record in records:
                json.loads(record["body"])
        return changes

    return cpu_ratio(rounds, ours, bare, batches)


PARTS = (handler,)
