"""The client CPU of an awaited add, over that of a bare aiobotocore put_item, with many of either in flight at once.

Rule 1: Speed is only ever a ratio within one run, taken in turns, because machines are noisy.
Rule 2: It is measured in a process of its own with the packages of .venv/async: aiobotocore's botocore is older.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from lab.engines.ministack import Engine
from ledger import Delta, Settings
from ledger.aio import AsyncLedger
from ledger.dynamo.aio import AsyncClient, make_async_client
from ledger.dynamo.client import POOL
from ledger.items import delta_item

REGION, TABLE = "eu-west-1", "bench-async"
COUNTER = "stock:85123A"
PACKAGES = Path(sys.prefix) / "async"
IN_FLIGHT, ROUNDS = 10_000, 2
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "embedded", "AWS_SECRET_ACCESS_KEY": "embedded"}


def async_add_over_put(engine: Engine, in_flight: int = IN_FLIGHT, rounds: int = ROUNDS) -> tuple[float, float]:
    """(over a client as aiobotocore makes it but for as many connections, over one of this library's)."""
    engine.create_table(TABLE, REGION)
    code = f"from {__name__} import measure; measure({engine.endpoint_url!r}, {in_flight}, {rounds})"
    environ = {**os.environ, **CREDENTIALS, "PYTHONPATH": str(PACKAGES)}
    ran = subprocess.run([sys.executable, "-c", code], env=environ, check=True, stdout=subprocess.PIPE, text=True)
    over_bare, over_tuned = map(float, ran.stdout.split())
    return over_bare, over_tuned


def measure(url: str, in_flight: int, rounds: int) -> None:
    print(*asyncio.run(_ratios(url, in_flight, rounds)))


async def _ratios(url: str, in_flight: int, rounds: int) -> tuple[float, float]:
    from aiobotocore.config import AioConfig
    from aiobotocore.session import get_session

    settings = Settings(table=TABLE, region=REGION, endpoint_url=url)
    as_it_comes = get_session().create_client(
        "dynamodb", region_name=REGION, endpoint_url=url, config=AioConfig(max_pool_connections=POOL)
    )
    async with AsyncLedger(settings) as ledger, as_it_comes as bare, make_async_client(REGION, url) as tuned:

        async def ours() -> float:
            return await _cpu_s(lambda _: ledger.add(COUNTER, -6), range(in_flight))

        async def theirs(client: AsyncClient) -> float:
            deltas = [ledger.prepare(COUNTER, -6) for _ in range(in_flight)]
            return await _cpu_s(lambda delta: _put(client, delta), deltas)

        ratios = []
        for _ in range(rounds + 1):  # the first one warms up
            # Ours before and after, so that a machine that grows slower or faster favours nobody.
            before, over_bare, between, over_tuned, after = (
                await ours(), await theirs(bare), await ours(), await theirs(tuned), await ours()
            )  # fmt: skip
            ratios.append(((before + between) / 2 / over_bare, (between + after) / 2 / over_tuned))
    return statistics.median(r[0] for r in ratios[1:]), statistics.median(r[1] for r in ratios[1:])


async def _cpu_s(work: Callable[[Any], Awaitable[object]], each: Iterable[Any]) -> float:
    """The seconds of this process's CPU that it takes to do all of it at once."""
    began = time.process_time()
    await asyncio.gather(*map(work, each))
    return time.process_time() - began


async def _put(client: AsyncClient, delta: Delta) -> None:
    await client.put_item(
        TableName=TABLE,
        Item=delta_item(delta),
        ConditionExpression="attribute_not_exists(pk)",
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
    )
