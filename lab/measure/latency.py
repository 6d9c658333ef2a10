"""How long callers wait, beside boto3 as it comes, on a server that answers after 4 ms and keeps
nothing: p50, p99 and p99.9, and the pace.

Rule 1: All is shown and nothing judged: times are the machine's. The ways take turns, so that it is
as slow for one as for another.
Rule 2: Callers of threads share a process, so p50 of many of them is CPU: they wait for Python's
lock. Of fewer than 1,000 calls p99.9 is the longest.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any

from botocore.config import Config

from lab.engines.ministack import ENVIRONMENT
from lab.engines.null import Null
from lab.measure import canned
from lab.measure.calls import BARE, OURS, given
from lab.measure.canned import REGION, SETTINGS
from lab.measure.figure import ASYNC, Figure, Shown
from lab.measure.goals import goal
from ledger import Ledger
from ledger.tables.boto import CONFIG
from ledger.tables.fast import FastClient
from reader import Reader

DELAY_MS = 4
CALLS = {1: 200, 32: 1_600, 256: 2_560}
"""Of each way, by callers."""

SMALL = {4: 8}
ROUNDS = 2
COUNTERS = 1_000  # of gathered adds
MANY = 32  # callers, of whom the goals are
POOL = Config(max_pool_connections=max(CALLS))
PROGRAM = (
    "import asyncio, sys; from lab.measure.latency import awaited; "
    "asyncio.run(awaited(sys.argv[1], *map(int, sys.argv[2:])))"
)

Call = Callable[[int], Any]


class Times:
    """Of the calls of one way, in all rounds."""

    def __init__(self) -> None:
        self.seconds, self.wall_s, self.cpu_s = list[float](), 0.0, 0.0

    def timed(self, call: Call, number: int) -> None:
        began = time.perf_counter()
        call(number)
        self.seconds.append(time.perf_counter() - began)

    async def awaited(self, call: Call, numbers: Iterator[int]) -> None:
        for number in numbers:
            began = time.perf_counter()
            await call(number)
            self.seconds.append(time.perf_counter() - began)

    def took(self, wall_s: float, cpu_s: float) -> None:
        self.wall_s += time.perf_counter() - wall_s
        self.cpu_s += time.process_time() - cpu_s

    def numbers(self) -> list[float]:
        """p50, p99 and p99.9 in ms, changes a second, and CPU of one in us."""
        ordered, calls = sorted(self.seconds), len(self.seconds)
        tails = [ordered[min(calls - 1, int(calls * part))] * 1e3 for part in (0.5, 0.99, 0.999)]
        return [*tails, calls / self.wall_s, self.cpu_s / calls * 1e6]


def threads(url: str, callers: int, calls: int) -> dict[str, Times]:
    """Each way by so many threads, in turns; the first turn warms up."""
    found: dict[str, Times] = {}
    with (
        closing(FastClient(REGION, url, session=canned.session())) as fast,
        ThreadPoolExecutor(callers) as pool,
    ):
        ways = _ways(url, fast)
        for turn in range(ROUNDS + 1):
            for name, call in ways.items():
                times = found.setdefault(name, Times()) if turn else Times()
                numbers = range(calls // ROUNDS if turn else callers)
                began = time.perf_counter(), time.process_time()
                list(pool.map(partial(times.timed, call), numbers))
                times.took(*began)
    return found


def _ways(url: str, fast: FastClient) -> dict[str, Call]:
    def made(config: Config) -> Any:
        return canned.session().create_client(
            "dynamodb", region_name=REGION, endpoint_url=url, config=config
        )

    plain, ours = made(POOL), made(CONFIG.merge(POOL))
    ways: dict[str, Call] = {}
    for kind, call in OURS.items():
        requests = canned.showing(canned.asked(call, 1))[0]
        ways[f"{kind}: {BARE[kind]}"] = partial(canned.replay, plain, requests)
        for name, client in (("boto3", ours), ("fast", fast)):
            by = Ledger(SETTINGS, client=client), Reader(SETTINGS, client=client)
            ways[f"{kind}: {name}"] = given(call, *by)
    for name, client in (("gathered", ours), ("gathered, fast", fast)):
        ledger = Ledger(SETTINGS, client=client, gather=True)
        ways[f"add: {name}"] = partial(_add_to_one_of_many, ledger)
    return ways


def _add_to_one_of_many(ledger: Ledger, number: int) -> object:
    return ledger.add(f"stock:{number % COUNTERS}", 1)


async def awaited(url: str, callers: int, calls: int) -> None:
    """In a process beside aiobotocore: print the numbers of each way by so many tasks, as JSON."""
    from aiobotocore.config import AioConfig
    from aiobotocore.session import get_session

    from ledger.client.aio import AsyncLedger
    from reader.aio import AsyncReader

    requests = {kind: canned.showing(canned.asked(call, 1))[0] for kind, call in OURS.items()}
    config = AioConfig(max_pool_connections=max(CALLS))
    made = get_session().create_client(
        "dynamodb", region_name=REGION, endpoint_url=url, config=config
    )
    async with (
        made as client,
        AsyncLedger(SETTINGS, client=client) as ledger,
        AsyncReader(SETTINGS, client=client) as reader,
    ):
        ways: dict[str, Call] = {}
        for kind, call in OURS.items():
            ways[f"{kind}: aiobotocore's {BARE[kind]}"] = partial(_replayed, client, requests[kind])
            ways[f"{kind}: async"] = given(call, ledger, reader)
        found = await _turns(ways, callers, calls)
        print(json.dumps({name: times.numbers() for name, times in found.items()}))


async def _replayed(client: Any, requests: Sequence[canned.Request], _: int) -> None:
    for name, arguments in requests:
        await getattr(client, name)(**arguments)


async def _turns(ways: dict[str, Call], callers: int, calls: int) -> dict[str, Times]:
    found: dict[str, Times] = {}
    for turn in range(ROUNDS + 1):
        for name, call in ways.items():
            times = found.setdefault(name, Times()) if turn else Times()
            numbers = iter(range(calls // ROUNDS if turn else callers))
            began = time.perf_counter(), time.process_time()
            await asyncio.gather(*(times.awaited(call, numbers) for _ in range(callers)))
            times.took(*began)
    return found


def waits(small: bool) -> Iterator[Figure | Shown]:
    """A line for each way and number of callers."""
    with Null(DELAY_MS) as null:
        for callers, calls in (SMALL if small else CALLS).items():
            found = {
                name: times.numbers() for name, times in threads(null.url, callers, calls).items()
            }
            arguments = [PROGRAM, null.url, str(callers), str(calls)]
            done = subprocess.run(
                [sys.executable, "-c", *arguments],
                env=os.environ | ENVIRONMENT | {"PYTHONPATH": f"{ASYNC}:{os.getcwd()}"},
                stdout=subprocess.PIPE,
                check=True,
                text=True,
            )
            found |= json.loads(done.stdout)
            for name, numbers in found.items():
                bare = found[f"{(kind := name.partition(':')[0])}: {BARE[kind]}"]
                yield Shown(_line(callers, name, numbers, bare))
            if callers == MANY:
                bare_pace = found[f"add: {BARE['add']}"][3]
                for name, of in (
                    (
                        "add: fast",
                        f"pace of {MANY} callers of FastClient, answers after 4 ms / bare put_item",
                    ),
                    ("add: gathered, fast", "the same, gathered"),
                ):
                    yield goal(of, found[name][3] / bare_pace)


def _line(callers: int, name: str, numbers: Sequence[float], bare: Sequence[float]) -> str:
    p50, p99, p999, pace, cpu = numbers
    took = f"p50 {p50:6.1f}  p99 {p99:6.1f}  p99.9 {p999:6.1f} ms"
    return (
        f"{callers:4} callers, {name:<54}{took}"
        f"  pace {pace / bare[3]:5.2f}  CPU {cpu / bare[4]:5.2f} of bare boto3"
    )


PARTS = (waits,)
