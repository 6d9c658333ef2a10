"""In a process of its own, beside aiobotocore: prints, of each run, the CPU of many adds at once
over that of as many bare put_item of aiobotocore. A small first run warms up and is not printed."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from aiobotocore.session import get_session

from lab.measure.clients import put_of
from ledger import Settings
from ledger.client.aio import AsyncLedger
from ledger.core.items import delta_item

REGION, COUNTER = "eu-west-1", "stock:85123A"
WARM = 200


async def _print(url: str, table: str, many: int, runs: int) -> None:
    settings = Settings(table=table, region=REGION, endpoint_url=url)
    bare = get_session().create_client("dynamodb", region_name=REGION, endpoint_url=url)
    async with bare as client, AsyncLedger(settings) as ledger:
        for run in range(runs + 1):
            number = many if run else WARM
            items = [delta_item(ledger.prepare(COUNTER, -6)) for _ in range(number)]
            ours = await _cpu_s(lambda _: ledger.add(COUNTER, -6), items)
            theirs = await _cpu_s(lambda item: client.put_item(**put_of(item, table)), items)
            if run:
                print(ours / theirs, flush=True)


async def _cpu_s(call: Callable[[Any], Coroutine[Any, Any, Any]], items: Sequence[Any]) -> float:
    began = time.process_time()
    answers = await asyncio.gather(*map(call, items))
    taken = time.process_time() - began
    if not all(isinstance(answer, dict) or answer.outcome == "recorded" for answer in answers):
        raise AssertionError("not every change was recorded")
    return taken


def main(url: str, table: str, many: int, runs: int) -> None:
    asyncio.run(_print(url, table, many, runs))
