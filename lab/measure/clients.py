"""What a client's calls take beside bare ones, on the embedded engine and, where it was got, on
DynamoDB Local.

Rule 1: A CPU figure is a median of ratios within one run, taken in turns; a pace is one to plain
ADD with this library's Config (`cost.py`). None is judged: machines are noisy.
Rule 2: A pace beside an engine has no goal and names the engine, because it is mostly the engine's:
lab/measure/latency.py has paces beside a server that does nothing.
"""

import asyncio
import gc
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import count
from threading import Lock
from typing import Any

from compactor import Compactor
from lab.engines.dynamodb_local import DynamoDBLocal, installed
from lab.engines.ministack import ENVIRONMENT, Engine
from lab.engines.null import Null
from lab.measure import canned
from lab.measure.cost import THREADS, Writers, pace
from lab.measure.figure import ASYNC, Calls, Figure, Shown, cpu_ratio, one_by_one, put_of
from lab.measure.goals import goal
from ledger import Change, Ledger, Settings
from ledger.core.clocks import wall_clock
from ledger.core.items import delta_item, delta_pk
from ledger.core.limit import Limit
from ledger.gate.updates import decide
from ledger.tables import ask
from ledger.tables.boto import CONFIG
from ledger.tables.fast import FastClient
from reader import Reader

REGION, TABLE, COUNTER = "eu-west-1", "bench", "stock:85123A"
LIMIT = Limit(ceiling=10**9, region=REGION)
SETTINGS = Settings(table=TABLE, region=REGION, limits={"seats:": LIMIT})
EACH = 50  # calls between two looks at the clock
PACKED = 20_000  # changes of a fold
WARM = 200  # adds in flight before those that are measured
CHECKED = 100  # counters that are read at the end


@contextmanager
def running(engine: Engine) -> Iterator[Engine]:
    with engine:
        engine.create_table(TABLE, REGION)
        yield engine


def _puts(client: Any) -> Calls:
    return one_by_one(lambda item: client.put_item(**put_of(item, TABLE)))


def _items(ledger: Ledger) -> list[Any]:
    return [delta_item(ledger.prepare(COUNTER, -6)) for _ in range(EACH)]


def adds(small: bool) -> Iterator[Figure]:
    with running(Engine()) as engine:
        ledger, rounds = Ledger(SETTINGS, client=engine.client(REGION, CONFIG)), 1 if small else 25
        for name, config, most in (
            ("bare boto3 put_item", None, 1.1),
            ("the same with our Config", CONFIG, 1.2),
        ):
            ours = one_by_one(lambda _: ledger.add(COUNTER, -6))
            bare = _puts(engine.client(REGION, config))
            ratio = cpu_ratio(rounds, ours, bare, lambda: _items(ledger))
            yield Figure(f"client CPU of an add / {name}", ratio, most, 0.1, judged=False)
        limited = _limited_over_update(engine, ledger, rounds)
        yield goal("limited: client CPU of an add / bare update_item of the same", limited)
        made = (rounds + 1) * EACH  # of each ratio; the bare ones put changes of the same counter
        check(engine.client(REGION, CONFIG), {COUNTER: -6 * 4 * made, "seats:ours": made // 2})


def fast(small: bool) -> Iterator[Figure]:
    """On a server that answers at once: while a client waits, others take the processor's caches,
    and its CPU is theirs.
    """
    session = canned.session()
    with Null(0) as null, closing(FastClient(REGION, null.url, session=session)) as client:
        ledger = Ledger(canned.SETTINGS, client=client)
        plain = session.create_client("dynamodb", region_name=REGION, endpoint_url=null.url)
        ours = one_by_one(lambda _: ledger.add(COUNTER, -6))
        ratio = cpu_ratio(1 if small else 40, ours, _puts(plain), lambda: _items(ledger))
    yield goal("client CPU of an add by FastClient / bare boto3 put_item", ratio)


def _limited_over_update(engine: Engine, ledger: Ledger, rounds: int) -> float:
    """What the ledger files now and then counts; the bare client has a new gate each time, so
    nothing need be filed.
    """
    bare, numbers = engine.client(REGION, CONFIG), count()

    def updates() -> list[ask.Operation]:
        theirs = f"seats:{next(numbers)}"
        ledger.add(theirs, 1)  # makes the gate
        deltas = [ledger.prepare(theirs, 1) for _ in range(EACH // 2)]
        return [
            ask.operation(decide(delta.lane, LIMIT, {delta.token: 1}), TABLE) for delta in deltas
        ]

    ours = one_by_one(lambda _: ledger.add("seats:ours", 1))
    theirs = one_by_one(lambda update: bare.update_item(**update.arguments))
    return cpu_ratio(rounds, ours, theirs, updates)


def in_flight(small: bool) -> Iterator[Figure | Shown]:
    """In a process of its own, beside aiobotocore: three runs, and the median, because whether
    Python's collector looks at everything once more while our calls are made, or theirs, is luck.
    """
    many, runs = (100, 1) if small else (10_000, 3)
    with running(Engine()) as engine:
        environ = os.environ | ENVIRONMENT | {"PYTHONPATH": ASYNC}
        given = f"{engine.endpoint_url!r}, {TABLE!r}, {many}, {runs}"
        code = (
            "import asyncio; from lab.measure.clients import adds_in_flight; "
            f"asyncio.run(adds_in_flight({given}))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], env=environ, stdout=subprocess.PIPE, check=True, text=True
        )
    found = [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
    ratio, without = map(statistics.median, zip(*found, strict=True))
    yield goal("client CPU of an add, all in flight / bare aiobotocore put_item, median", ratio)
    collected = f"{ratio:.3f} with Python's collector, {without:.3f} without its time"
    yield Shown(f"  of {runs} runs with {many:,} in flight: {collected}")


async def adds_in_flight(url: str, table: str, many: int, runs: int) -> None:
    """In the process of `in_flight`: print the CPU of many adds at once over that of as many bare
    put_item of aiobotocore, of each run; then the same without the collector's time. A small first
    run warms up and is not printed.
    """
    from aiobotocore.session import get_session

    from ledger.client.aio import AsyncLedger

    settings = Settings(table=table, region=REGION, endpoint_url=url)
    bare = get_session().create_client("dynamodb", region_name=REGION, endpoint_url=url)
    async with bare as client, AsyncLedger(settings) as ledger:
        for run in range(runs + 1):
            number = many if run else WARM
            items = [delta_item(ledger.prepare(COUNTER, -6)) for _ in range(number)]
            ours, of_it = await _cpu_s(lambda _: ledger.add(COUNTER, -6), items)
            theirs, of_them = await _cpu_s(
                lambda item: client.put_item(**put_of(item, table)), items
            )
            if run:
                print(ours / theirs, (ours - of_it) / (theirs - of_them), flush=True)


async def _cpu_s(
    call: Callable[[Any], Coroutine[Any, Any, Any]], items: Sequence[Any]
) -> tuple[float, float]:
    """The CPU of all the calls, and what of it Python's collector took."""
    at: dict[str, list[float]] = {"start": [], "stop": []}

    def note(phase: str, _: object) -> None:
        at[phase].append(time.process_time())

    gc.collect()
    gc.callbacks.append(note)
    began = time.process_time()
    answers = await asyncio.gather(*map(call, items))
    taken = time.process_time() - began
    gc.callbacks.remove(note)
    if not all(isinstance(answer, dict) or answer.outcome == "recorded" for answer in answers):
        raise AssertionError("not every change was recorded")
    return taken, sum(at["stop"]) - sum(at["start"])


def folds(small: bool) -> Iterator[Figure]:
    settings, numbers = Settings(table=TABLE, region=REGION), count()
    with running(Engine()) as engine:
        client = engine.client(REGION, CONFIG)
        ledger, pages = Ledger(settings, client=client), client.get_paginator("query")
        compactor = Compactor(
            settings, clients={REGION: client}, clock=lambda: wall_clock() + 60_000
        )

        def given() -> Sequence[str]:
            counter = f"stock:{next(numbers)}"
            ledger.add_many([Change(counter, 1)] * PACKED, pack=True)
            return [counter]

        def folded(counter: str) -> None:
            if (made := compactor.compact(counter).folded) != PACKED:
                raise AssertionError(f"{made:,} of {PACKED:,} changes were folded")

        def read(counter: str) -> None:
            (lane,) = settings.lanes_of(counter)
            query: Any = {
                "KeyConditionExpression": "pk = :pk",
                "ExpressionAttributeValues": {":pk": {"S": delta_pk(lane)}},
            }
            list(pages.paginate(TableName=TABLE, ConsistentRead=True, **query))

        ratio = cpu_ratio(1 if small else 7, one_by_one(folded), one_by_one(read), given)
    yield Figure(
        "CPU of a fold of packs of 400 / bare Query of the same pages", ratio, 15, 1, judged=False
    )


def gathered(small: bool) -> Iterator[Figure | Shown]:
    """32 threads whose changes go together, and the first changes of limited counters."""
    with running(Engine()) as engine:
        yield from _on(engine, small)


def gathered_on_dynamodb_local(small: bool) -> Iterator[Figure | Shown]:
    if not small and installed():
        with running(DynamoDBLocal()) as engine:
            yield from _on(engine, small)


def _on(engine: Engine, small: bool) -> Iterator[Figure | Shown]:
    turns = (1, 0.05) if small else (5, 0.5)
    client, added = engine.client(REGION, CONFIG), Counter[str]()
    gathers, limited = Ledger(SETTINGS, client=client, gather=True), Ledger(SETTINGS, client=client)

    def add(counter: str, _: str = "") -> None:
        gathers.add(counter, 1)
        with lock:
            added[counter] += 1

    def add_first(_: str, key: str) -> None:
        limited.add(f"seats:{key}", 1)
        with lock:
            added[f"seats:{key}"] += 1

    lock, plain = Lock(), _add(client)
    for counters, most in ((1, 0.25), (1_000, 0.3)):
        rate = pace(Writers(add, counters), Writers(plain, counters), *turns, THREADS).rate
        of = f"gathered, {THREADS} threads, {counters:,} counter{'s' * (counters > 1)}"
        yield Shown(f"{of}: pace {rate:.2f} of ADD's, as far as {engine.name} lets it")
        cpu = _gathered_over_put(engine, gathers, add, counters, 1 if small else 4)
        yield Figure(f"{of}: CPU / bare put_item ({engine.name})", cpu, most, 0.01, judged=False)
    rate = pace(Writers(add_first, 1_000), Writers(plain, 1_000), *turns, 8).rate
    of = "limited: first adds of 1,000 counters"
    yield Shown(f"{of}: pace {rate:.2f} of ADD's, as far as {engine.name} lets it")
    check(client, dict(added.most_common()[:: max(1, len(added) // CHECKED)]))


def check(client: Any, values: Mapping[str, int]) -> None:
    """Raises AssertionError where a counter does not have what was added: adds that do nothing
    are fast.
    """
    if (found := Reader(SETTINGS, client=client).values([*values])) != values:
        wrong = next(counter for counter in values if found[counter] != values[counter])
        raise AssertionError(f"{wrong} reads {found[wrong]}, but {values[wrong]} were added")


def _add(client: Any) -> Callable[[str, str], object]:
    """Plain ADD."""

    def add(counter: str, _: str) -> None:
        key, one = {"pk": {"S": f"add-{counter}"}, "sk": {"S": "count"}}, {":one": {"N": "1"}}
        client.update_item(
            TableName=TABLE,
            Key=key,
            UpdateExpression="ADD amount :one",
            ExpressionAttributeValues=one,
        )

    return add


def _gathered_over_put(
    engine: Engine, ledger: Ledger, add: Callable[[str], None], counters: int, rounds: int
) -> float:
    """Bare puts come from one thread, so they do not contend for Python's lock."""
    with ThreadPoolExecutor(THREADS) as threads:

        def ours(items: Sequence[Any]) -> int:
            numbers = range(THREADS * len(items))
            return len([*threads.map(lambda number: add(f"counter-{number % counters}"), numbers)])

        puts = _puts(engine.client(REGION, None))
        return cpu_ratio(rounds, ours, puts, lambda: _items(ledger))


PARTS = (adds, fast, in_flight, folds, gathered, gathered_on_dynamodb_local)
