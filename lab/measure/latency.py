"""How long callers wait, beside boto3 as it comes, on a server that answers after 4 ms and keeps
nothing: p50, p99 and p99.9, and the pace.

Rule 1: All is shown and nothing judged: times are the machine's. The ways take turns of the same
length, so that it is as slow for one as for another.
Rule 2: A caller is a thread, or a task, that calls again when it has its answer, and nothing else
runs in its process. Threads wait for Python's lock, so p50 of many of them is CPU.
Rule 3: Of fewer than 1,000 calls p99.9 is the longest.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from itertools import count, repeat, takewhile
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
CALLERS, SMALL = (1, 32, 256), (4,)
TURN_S, SMALL_S, WARM_S = 0.7, 0.05, 0.2
TURNS = 3
COUNTERS = 1_000  # of gathered adds
MANY = 32  # callers, of whom the goals are
POOL = Config(max_pool_connections=max(CALLERS))
PROGRAM = (
    "import asyncio, sys; from lab.measure.latency import awaited; "
    "asyncio.run(awaited(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))"
)

Call = Callable[[int], Any]


class Times:
    """Of the calls of one way, in all its turns."""

    def __init__(self) -> None:
        self.seconds, self.wall_s, self.cpu_s = list[float](), 0.0, 0.0

    def timed(self, call: Call, numbers: Iterator[int]) -> None:
        """One caller: it calls again when it has its answer."""
        for number in numbers:
            began = time.perf_counter()
            call(number)
            self.seconds.append(time.perf_counter() - began)

    async def awaited(self, call: Call, numbers: Iterator[int]) -> None:
        for number in numbers:
            began = time.perf_counter()
            await call(number)
            self.seconds.append(time.perf_counter() - began)

    @contextmanager
    def turn(self, turn_s: float) -> Iterator[Iterator[int]]:
        """Numbers that the callers share, until the turn is over."""
        began, cpu_s = time.perf_counter(), time.process_time()
        yield takewhile(lambda _: time.perf_counter() < began + turn_s, count())
        self.wall_s += time.perf_counter() - began
        self.cpu_s += time.process_time() - cpu_s

    def numbers(self) -> list[float]:
        """p50, p99 and p99.9 in ms, changes a second, and CPU of one in us."""
        ordered, calls = sorted(self.seconds), len(self.seconds)
        tails = [ordered[min(calls - 1, int(calls * part))] * 1e3 for part in (0.5, 0.99, 0.999)]
        return [*tails, calls / self.wall_s, self.cpu_s / calls * 1e6]


def threads(url: str, callers: int, turn_s: float) -> dict[str, Times]:
    """Each way by so many threads, in turns."""
    found: dict[str, Times] = {}
    with (
        closing(FastClient(REGION, url, session=canned.session())) as fast,
        ThreadPoolExecutor(callers) as pool,
    ):
        for call, times, this_s in _turns(_ways(url, fast), found, turn_s):
            with times.turn(this_s) as numbers:
                list(pool.map(times.timed, repeat(call, callers), repeat(numbers)))
    return found


def _turns(
    ways: Mapping[str, Call], found: dict[str, Times], turn_s: float
) -> Iterator[tuple[Call, Times, float]]:
    """What is called in each turn, where its times go, and how long the turn is."""
    for call in ways.values():  # warms up, and its times go nowhere
        yield call, Times(), WARM_S
    for _ in range(TURNS):
        for name, call in ways.items():
            yield call, found.setdefault(name, Times()), turn_s


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


async def awaited(url: str, callers: int, turn_s: float) -> None:
    """In a process beside aiobotocore: print the numbers of each way by so many tasks, as JSON."""
    from aiobotocore.config import AioConfig
    from aiobotocore.session import get_session

    from ledger.client.aio import AsyncLedger
    from reader.aio import AsyncReader

    requests = {kind: canned.showing(canned.asked(call, 1))[0] for kind, call in OURS.items()}
    config = AioConfig(max_pool_connections=max(CALLERS))
    made = get_session().create_client(
        "dynamodb", region_name=REGION, endpoint_url=url, config=config
    )
    async with (
        made as client,
        AsyncLedger(SETTINGS, client=client) as ledger,
        AsyncReader(SETTINGS, client=client) as reader,
    ):
        ways: dict[str, Call] = {}
        found: dict[str, Times] = {}
        for kind, ask in OURS.items():
            ways[f"{kind}: aiobotocore's {BARE[kind]}"] = partial(_replayed, client, requests[kind])
            ways[f"{kind}: async"] = given(ask, ledger, reader)
        for call, times, this_s in _turns(ways, found, turn_s):
            with times.turn(this_s) as numbers:
                await asyncio.gather(*(times.awaited(call, numbers) for _ in range(callers)))
        print(json.dumps({name: times.numbers() for name, times in found.items()}))


async def _replayed(client: Any, requests: Sequence[canned.Request], _: int) -> None:
    for name, arguments in requests:
        await getattr(client, name)(**arguments)


def waits(small: bool) -> Iterator[Figure | Shown]:
    """A line for each way and number of callers."""
    with Null(DELAY_MS) as null:
        turn_s = SMALL_S if small else TURN_S
        for callers in SMALL if small else CALLERS:
            found = {
                name: times.numbers() for name, times in threads(null.url, callers, turn_s).items()
            }
            arguments = [PROGRAM, null.url, str(callers), str(turn_s)]
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
        f"{callers:4} callers, {name:<62}{took}"
        f"  pace {pace / bare[3]:5.2f}  CPU {cpu / bare[4]:5.2f} of bare boto3"
    )


PARTS = (waits,)
