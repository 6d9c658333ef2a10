"""The client CPU of an add, over that of bare boto3 and aiobotocore for the same item.

Rule 1: A figure is the median of ratios within one run, taken in turns, because machines are noisy. CPU is this
process's. Nothing here is judged.
Rule 2: aiobotocore's botocore is older, so the awaited add is measured in a process with the packages of .venv/async.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from lab.engines.ministack import Engine
from lab.measure.figure import Figure
from ledger import Ledger, Settings
from ledger.aio import AsyncLedger
from ledger.dynamo import ask
from ledger.dynamo.aio import make_async_client
from ledger.dynamo.client import CONFIG, POOL
from ledger.gate.updates import decide
from ledger.items import delta_item
from ledger.limit import Limit

REGION, TABLE, COUNTER = "eu-west-1", "bench-cpu", "stock:85123A"
EACH, IN_FLIGHT = 50, 10_000
PACKAGES = Path(sys.prefix) / "async"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "embedded", "AWS_SECRET_ACCESS_KEY": "embedded"}
LIMIT = Limit(ceiling=10**9, region=REGION)
SETTINGS = Settings(table=TABLE, region=REGION, limits={"seats:": LIMIT})


def figures(*, small: bool) -> Iterator[Figure]:
    with Engine() as engine:
        engine.create_table(TABLE, REGION)
        rounds, in_flight = (1, 100) if small else (40, IN_FLIGHT)
        for name, over in (("put_item of the same item", None), ("the same with this library's Config", CONFIG)):
            yield Figure(f"client CPU of add / bare boto3 {name}", _add_over_put(engine, over, rounds), judged=False)
        limited = _limited_over_update(engine, rounds)
        yield Figure("limited: client CPU of add / bare update_item that decides the same", limited, 1.1, judged=False)
        code = f"from {__name__} import measure; measure({engine.endpoint_url!r}, {in_flight}, {1 if small else 3})"
        environ = {**os.environ, **CREDENTIALS, "PYTHONPATH": str(PACKAGES)}
        ran = subprocess.run([sys.executable, "-c", code], env=environ, check=True, stdout=subprocess.PIPE, text=True)
        as_it_comes, tuned = map(float, ran.stdout.split())
        of = f"client CPU of an add, {in_flight:,} in flight"
        yield Figure(f"{of} / bare aiobotocore put_item", as_it_comes, 1.1, judged=False)
        yield Figure(f"{of} / the same with this library's Config", tuned, judged=False)


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


def measure(url: str, in_flight: int, rounds: int) -> None:
    """In the other process: prints both ratios of the awaited add."""
    print(*asyncio.run(_ratios(url, in_flight, rounds)))


async def _ratios(url: str, in_flight: int, rounds: int) -> tuple[float, float]:
    from aiobotocore.config import AioConfig
    from aiobotocore.session import get_session

    settings, given = replace(SETTINGS, endpoint_url=url), {"region_name": REGION, "endpoint_url": url}
    as_it_comes = get_session().create_client("dynamodb", config=AioConfig(max_pool_connections=POOL), **given)
    async with AsyncLedger(settings) as ledger, as_it_comes as bare, make_async_client(REGION, url) as tuned:

        async def ours() -> float:
            return await _cpu_s(lambda _: ledger.add(COUNTER, -6), range(in_flight))

        async def theirs(client: Any) -> float:
            items = [delta_item(ledger.prepare(COUNTER, -6)) for _ in range(in_flight)]
            return await _cpu_s(lambda item: client.put_item(**put_of(item)), items)

        ratios = []
        for _ in range(rounds + 1):  # the first one warms up
            # Ours before and after, so that a machine that grows slower or faster favours nobody.
            own, over_bare, between, over_tuned, after = (
                await ours(), await theirs(bare), await ours(), await theirs(tuned), await ours()
            )  # fmt: skip
            ratios.append(((own + between) / 2 / over_bare, (between + after) / 2 / over_tuned))
    first, second = (statistics.median(column) for column in zip(*ratios[1:], strict=True))
    return first, second


async def _cpu_s(work: Callable[[Any], Awaitable[object]], arguments: Sequence[Any]) -> float:
    began = time.process_time()
    await asyncio.gather(*map(work, arguments))
    return time.process_time() - began
