"""The compactor's speed on an engine, and the memory of a fold.

Rule 1: CPU is this process's, so the engine's is not in it.
Rule 2: The steps are the shipped programs, run as `Compactor` runs them.
Rule 3: The backlog whose memory is measured makes its pages when they are asked for and keeps none, so what grows with
it would be the fold's.
"""

import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from botocore.config import Config
from mypy_boto3_dynamodb.client import DynamoDBClient

from compactor.clean import clean
from compactor.fold import fold
from compactor.report import Tally
from compactor.settle import settle
from lab.engines.ministack import Engine
from ledger import Delta, Lane, Settings, tokens
from ledger.dynamo.client import CONFIG
from ledger.items import delta_item, fold_pk, pack_item
from ledger.lane.add import pack_of
from ledger.requests import Get, Instant, Item, Page, Program, Put, Query, Request, Result, Transact, run
from ledger.table import DynamoTable

REGION, TABLE = "eu-west-1", "bench-compaction"
START_MS = 1_800_000_000_000
LANE = Lane(REGION, 0, "hot")
SETTINGS = Settings(table=TABLE, region=REGION)
PUTS_MAX = 25
READ_TIMEOUT_S = 60  # DynamoDB Local may take longer than our 5 seconds


def delta(number: int) -> Delta:
    """The change of 1 that was asked for that many milliseconds after the first."""
    return Delta(LANE, tokens.make(START_MS + number, bytes(tokens.RANDOM_BYTES)), 1)


def put_all(client: DynamoDBClient, table: str, items: Sequence[Item]) -> None:
    """Put these items, in batches, without conditions."""
    for first in range(0, len(items), PUTS_MAX):
        puts: list[Any] = [{"PutRequest": {"Item": item}} for item in items[first : first + PUTS_MAX]]
        if client.batch_write_item(RequestItems={table: puts})["UnprocessedItems"]:
            raise AssertionError("the engine left puts unprocessed")


def tail_items(changes: int, each: int) -> list[Item]:
    """The items of so many changes, `each` in one: deltas, or packs."""
    deltas = [delta(number) for number in range(changes)]
    if each == 1:
        return list(map(delta_item, deltas))
    return [pack_item(pack_of(deltas[first : first + each])) for first in range(0, changes, each)]


def speed(engine: Engine, deltas: int = 24_000, each: int = 1) -> tuple[float, float, float]:
    """Of that many changes, `each` in an item, a second of the compactor's CPU: folded; and settled; and deleted."""
    settings = replace(SETTINGS, table=f"{TABLE}-{each}")
    engine.create_table(settings.table, REGION)
    client = engine.client(REGION, CONFIG.merge(Config(read_timeout=READ_TIMEOUT_S)))
    put_all(client, settings.table, tail_items(deltas, each))
    table = DynamoTable.of(settings, {REGION: client})
    now_ms = START_MS + deltas + SETTINGS.allowed_lateness_ms
    tally = Tally()

    def cpu_s(program: Program[Result]) -> tuple[float, Result]:
        began = time.process_time()
        result = run(program, table, lambda: Instant(now_ms, 0))
        return time.process_time() - began, result

    folding, checkpoint = cpu_s(_fold(tally))
    if checkpoint is None or checkpoint.total != deltas:
        raise AssertionError(f"the checkpoint is {checkpoint}, but {deltas} changes of 1 were folded")
    settling, _ = cpu_s(settle(LANE, tally, checkpoint.watermark, fold_max=SETTINGS.fold_max))
    cleaning = 0.0
    for _ in ("notes", "deletes"):
        spent, _ = cpu_s(clean(LANE, tally, settings.regions, units_per_s=10**9, keep_ms=SETTINGS.keep_ms))
        cleaning += spent
        now_ms += SETTINGS.keep_ms
    if (tally.folded, tally.settled, tally.cleaned) != (deltas, 0, deltas):
        raise AssertionError(f"{deltas} deltas became {tally}")
    return deltas / folding, deltas / (folding + settling), deltas / (folding + settling + cleaning)


def fold_peak_mb(deltas: int) -> float:
    """The most megabytes of Python objects that were alive at once while a backlog of that many deltas was folded."""
    now = Instant(START_MS + deltas + SETTINGS.allowed_lateness_ms, 0)
    tally = Tally()
    tracemalloc.start()
    try:
        run(_fold(tally), Backlog(deltas), lambda: now)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    if tally.folded != deltas:
        raise AssertionError(f"{tally.folded} of {deltas} deltas were folded")
    return peak / 1e6


def _fold(tally: Tally) -> Program[Any]:
    return fold(LANE, tally, allowed_lateness_ms=SETTINGS.allowed_lateness_ms, fold_min=1, fold_max=SETTINGS.fold_max)


PAGE_DELTAS = 8_000
"""About a page of 1 MB."""


class Backlog:
    """A table whose lane has this many deltas, each made when it is asked for. It keeps the last commit alone."""

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
                found = tuple(delta_item(delta(number)) for number in range(first, last))
                return Page(found, found[-1]["sk"]["S"] if last < self._deltas else None)
            case Transact(writes):
                self._fold = {write.key: write.item for write in writes if isinstance(write, Put)}
                return None
            case Put():  # the lane's place in the directory
                return None
            case _:
                raise TypeError(f"no fold asks for {request!r}")
