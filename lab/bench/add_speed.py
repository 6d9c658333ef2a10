"""The writer's speed: client CPU of an add, and adds a second of many threads on one counter.

Rule 1: Speed is only ever a ratio within one run, taken in turns, because machines are noisy.
Rule 2: CPU is this process's.
Rule 3: The comparators ask for the same item, and for many threads they have this library's Config too.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count, cycle, islice, permutations

from botocore.config import Config
from mypy_boto3_dynamodb.client import DynamoDBClient

from lab.designs.optimistic import EntityTag
from lab.designs.trial import Trial
from lab.engines.ministack import Engine
from ledger import Delta, Ledger, Settings
from ledger.dynamo.client import CONFIG
from ledger.items import delta_item

REGION, TABLE, GATHERED = "eu-west-1", "bench-speed", "bench-gathered"
COUNTER = "stock:85123A"
THREADS = 32


def add_over_put(engine: Engine, rounds: int = 60, each: int = 50) -> tuple[float, float]:
    """Client CPU of `Ledger.add` over that of a bare boto3 put_item of the same item: medians of ratios in turns.

    (over a client as boto3 makes it, over one with this library's Config: what the library itself adds.)
    """
    engine.create_table(f"{TABLE}-cpu", REGION)
    settings = Settings(table=f"{TABLE}-cpu", region=REGION)
    ledger = Ledger(settings, client=engine.client(REGION, CONFIG))
    bare, tuned = engine.client(REGION, None), engine.client(REGION, CONFIG)
    orders = cycle(permutations(range(3)))
    ratios = []
    for order in islice(orders, rounds + 2):
        deltas = [[ledger.prepare(COUNTER, -6) for _ in range(each)] for _ in range(2)]
        works = [
            partial(_add, ledger, each),
            *(partial(_put, client, settings.table, some) for client, some in zip((bare, tuned), deltas, strict=True)),
        ]
        spent = {index: cpu_s(works[index]) for index in order}
        ratios.append((spent[0] / spent[1], spent[0] / spent[2]))
    warm = ratios[2:]
    return statistics.median(r[0] for r in warm), statistics.median(r[1] for r in warm)


def cpu_s(work: Callable[[], None]) -> float:
    """The seconds of this process's CPU that it takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


def _add(ledger: Ledger, count: int) -> None:
    for _ in range(count):
        ledger.add(COUNTER, -6)


def _put(client: DynamoDBClient, table: str, deltas: Sequence[Delta]) -> None:
    for delta in deltas:
        client.put_item(
            TableName=table,
            Item=delta_item(delta),
            ConditionExpression="attribute_not_exists(pk)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )


def adds_over_others(engine: Engine, rounds: int = 12, each: int = 5) -> dict[str, float]:
    """Adds a second of 32 threads on one counter, over those of others: medians of ratios in turns.

    plain: UpdateItem ADD by boto3 as it comes, but with a connection for every thread. tuned: with this library's
    Config. optimistic: the locking of lab/designs; it is slow, and takes part in one round of four.
    """
    engine.create_table(TABLE, REGION)
    ledger = Ledger(Settings(table=TABLE, region=REGION), client=engine.client(REGION, CONFIG))
    ours = partial(ledger.add, COUNTER, 1)
    optimistic, numbers = Trial(engine, EntityTag()), count()
    others: dict[str, Callable[[], object]] = {
        "plain": partial(_plain_add, engine.client(REGION, Config(max_pool_connections=THREADS)), TABLE),
        "tuned": partial(_plain_add, engine.client(REGION, CONFIG), TABLE),
        "optimistic": lambda: optimistic.add(COUNTER, 1, str(next(numbers))),
    }
    ratios: dict[str, list[float]] = {name: [] for name in others}
    with ThreadPoolExecutor(THREADS) as threads:
        for number in range(-1, rounds):
            for name, other in others.items():
                if name == "optimistic" and number % 4:
                    continue
                # Ours before and after, so that a machine that grows slower or faster favours nobody.
                before = _seconds(threads, ours, each)
                theirs = _seconds(threads, other, each)
                if number >= 0:  # the first round warms up
                    ratios[name].append(2 * theirs / (before + _seconds(threads, ours, each)))
    return {name: statistics.median(found) for name, found in ratios.items()}


@dataclass(frozen=True, slots=True)
class Gathered:
    """Group commit by 32 threads on one counter. rate: over plain ADD's with the same Config; cpu: a change's, on this
    side, over that of a bare boto3 put_item by as many threads.
    """

    rate: float
    cpu: float


def gathered_over_others(engine: Engine, rounds: int = 12, each: int = 5, more: int = 10) -> Gathered:
    """Medians of ratios in turns; as it is faster, each of its threads makes `more` times as many adds in a turn."""
    engine.create_table(GATHERED, REGION)
    ledger = Ledger(Settings(table=GATHERED, region=REGION), gather=True, client=engine.client(REGION, CONFIG))
    bare, tuned = engine.client(REGION, Config(max_pool_connections=THREADS)), engine.client(REGION, CONFIG)
    ours, turns = partial(ledger.add, COUNTER, 1), []
    with ThreadPoolExecutor(THREADS) as threads:
        for _ in range(rounds + 1):
            own = _spent(threads, ours, each * more)
            add = _spent(threads, partial(_plain_add, tuned, GATHERED), each)
            put = _spent(threads, lambda: _put(bare, GATHERED, [ledger.prepare(COUNTER, 1)]), each)
            turns.append((more * add[0] / own[0], own[1] / put[1] / more))
    ledger.close()
    return Gathered(*(statistics.median(each) for each in zip(*turns[1:], strict=True)))


def _spent(threads: ThreadPoolExecutor, add: Callable[[], object], each: int) -> tuple[float, float]:
    """The seconds, and those of CPU, in which every thread makes that many adds."""
    began = time.process_time()
    seconds = _seconds(threads, add, each)
    return seconds, time.process_time() - began


def _seconds(threads: ThreadPoolExecutor, add: Callable[[], object], each: int) -> float:
    """How long every thread takes to make that many adds."""
    began = time.perf_counter()
    for done in [threads.submit(lambda: [add() for _ in range(each)]) for _ in range(THREADS)]:
        done.result()
    return time.perf_counter() - began


def _plain_add(client: DynamoDBClient, table: str) -> None:
    key, one = {"pk": {"S": COUNTER}, "sk": {"S": "plain"}}, {":one": {"N": "1"}}
    client.update_item(TableName=table, Key=key, UpdateExpression="ADD amount :one", ExpressionAttributeValues=one)
