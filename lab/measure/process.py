"""What the process of a user takes: the memory of a fold, the CPU of an import and of an add over bare boto3's.

Rule 1: The backlog whose memory is measured makes its pages when they are asked for and keeps none, so what grows with
it would be the fold's.
Rule 2: Imports are measured in new processes, over `import boto3`; the first of them compiles, as pip does.
Rule 3: The CPU of an add is a median of ratios within one run, taken in turns, because machines are noisy. Nothing that
takes CPU is judged.
"""

import os
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

from compactor.fold import fold
from compactor.report import Tally
from lab.engines.ministack import Engine
from lab.measure.figure import Figure
from ledger import Delta, Lane, Ledger, Settings, tokens
from ledger.dynamo import ask
from ledger.dynamo.client import CONFIG
from ledger.gate.updates import decide
from ledger.items import delta_item, fold_pk
from ledger.limit import Limit
from ledger.requests import Get, Instant, Item, Page, Put, Query, Request, Transact, run

START_MS = 1_800_000_000_000
REGION, TABLE, COUNTER = "eu-west-1", "bench", "stock:85123A"
LANE = Lane(REGION, 0, "hot")
LIMIT = Limit(ceiling=10**9, region=REGION)
SETTINGS = Settings(table=TABLE, region=REGION, limits={"seats:": LIMIT})
EACH = 50  # adds between two looks at the clock
PAGE_DELTAS = 8_000  # about a page of 1 MB

FUNCTIONS = ("add_from_queue", "api", "ring", "compact", "sweep", "canary")
ENVIRONMENT = {
    **dict.fromkeys(("LEDGER_TABLE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "counters"),
    "AWS_REGION": "eu-west-1",
    "LEDGER_WORK_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/111122223333/work",
    "PYTHONDONTWRITEBYTECODE": "",
}
"""What a function is started with; nothing is sent."""


class Backlog:
    """A table whose lane has this many deltas. It keeps the last commit alone."""

    def __init__(self, deltas: int) -> None:
        self._deltas = deltas
        self._fold: dict[Any, Item] = {}

    def answer(self, request: Request, /) -> Any:
        match request:
            case Get(key):
                return self._fold.get(key)
            case Query(pk) if pk == fold_pk(LANE):
                return Page(tuple(self._fold.values()), None)
            case Query(_, after, _, limit):
                first = 0 if after is None else tokens.time_ms(after) - START_MS + 1
                last = min(first + (limit or PAGE_DELTAS), self._deltas)
                found = tuple(map(_delta, range(first, last)))
                return Page(found, found[-1]["sk"]["S"] if last < self._deltas else None)
            case Transact(writes):
                self._fold = {write.key: write.item for write in writes if isinstance(write, Put)}
                return None
            case Put():  # the lane's place in the directory
                return None
            case _:
                raise TypeError(f"no fold asks for {request!r}")


def _delta(number: int) -> Item:
    """The change of 1 that was asked for that many milliseconds after the first."""
    return delta_item(Delta(LANE, tokens.make(START_MS + number, bytes(tokens.RANDOM_BYTES)), 1))


def fold_peak_mb(deltas: int) -> float:
    """The most megabytes of Python objects that were alive at once while a backlog of that many deltas was folded."""
    now = Instant(START_MS + deltas + SETTINGS.allowed_lateness_ms, 0)
    tally = Tally()
    tracemalloc.start()
    run(fold(LANE, tally, replace(SETTINGS, fold_min=1)), Backlog(deltas), lambda: now)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    if tally.folded != deltas:
        raise AssertionError(f"{tally.folded} of {deltas} deltas were folded")
    return peak / 1e6


def import_over_boto3_ms(module: str, runs: int) -> float:
    """Milliseconds of CPU, the median of so many runs. Of a function's main it is the cold start of our code."""
    code = f"from time import process_time as now; import boto3; b = now(); import {module}; print(now() - b)"
    command, environ = [sys.executable, "-c", code], os.environ | ENVIRONMENT
    return 1_000 * statistics.median(
        float(subprocess.run(command, env=environ, capture_output=True, check=True).stdout) for _ in range(runs)
    )


def put_of(item: Any) -> dict[str, Any]:
    """What the library asks of put_item for a delta."""
    condition = {"ConditionExpression": "attribute_not_exists(pk)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    return {"TableName": TABLE, "Item": item, **condition}


def _ratio(rounds: int, ours: Callable[[], object], theirs: Callable[[Any], object], given: Callable[[], Any]) -> float:
    """CPU of our calls over theirs, each of as many as are given; what is given is made before. The first one warms
    up."""
    ratios = []
    for _ in range(rounds + 1):
        asked = given()
        began = time.process_time()
        for _ in asked:
            ours()
        between = time.process_time()
        for each in asked:
            theirs(each)
        ratios.append((between - began) / (time.process_time() - between))
    return statistics.median(ratios[1:])


def _add_over_put(engine: Engine, config: Any, rounds: int) -> float:
    ledger, bare = Ledger(SETTINGS, client=engine.client(REGION, CONFIG)), engine.client(REGION, config)
    return _ratio(
        rounds,
        lambda: ledger.add(COUNTER, -6),
        lambda item: bare.put_item(**put_of(item)),
        lambda: [delta_item(ledger.prepare(COUNTER, -6)) for _ in range(EACH)],
    )


def _limited_over_update(engine: Engine, rounds: int) -> float:
    """What the ledger files now and then counts; the bare client has a new gate each time, so nothing need be filed."""
    ledger, bare = Ledger(SETTINGS, client=engine.client(REGION, CONFIG)), engine.client(REGION, CONFIG)
    numbers = count()

    def asked() -> list[ask.Operation]:
        theirs = f"seats:{next(numbers)}"
        ledger.add(theirs, 1)  # makes the gate
        deltas = [ledger.prepare(theirs, 1) for _ in range(EACH // 2)]
        return [ask.operation(decide(delta.lane, LIMIT, {delta.token: 1}), TABLE) for delta in deltas]

    return _ratio(
        rounds, lambda: ledger.add("seats:ours", 1), lambda update: bare.update_item(**update.arguments), asked
    )


def figures(*, small: bool) -> Iterator[Figure]:
    first, last = (18_000, 20_000) if small else (100_000, 1_000_000)
    peak_mb = fold_peak_mb(first)
    yield Figure(f"peak memory of a fold of {first:,} deltas, MB", peak_mb, 30, 1)
    yield Figure(f"peak memory of a fold of {last:,} deltas, MB", fold_peak_mb(last), round(1.1 * peak_mb, 1), 1)
    for function in FUNCTIONS[:1] if small else ("", *FUNCTIONS):
        module = f"service.{function}.main" if function else "ledger"
        ms = import_over_boto3_ms(module, 1 if small else 9)
        yield Figure(f"import {module}, CPU over import boto3 alone, ms", ms, judged=False)
    with Engine() as engine:
        engine.create_table(TABLE, REGION)
        rounds = 1 if small else 40
        for name, over in (("put_item of the same item", None), ("the same with this library's Config", CONFIG)):
            yield Figure(f"client CPU of add / bare boto3 {name}", _add_over_put(engine, over, rounds), judged=False)
        limited = _limited_over_update(engine, rounds)
        yield Figure("limited: client CPU of add / bare update_item that decides the same", limited, 1.1, judged=False)
