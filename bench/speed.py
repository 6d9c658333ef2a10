"""The writer's speed: client CPU of an add, and adds a second of many threads on one counter.

Rules: speed is only ever a ratio within one run, taken in turns, because machines are noisy; CPU is this process's; the
comparators ask for the same item, and for many threads they have this library's Config too.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from ledger import Delta, Ledger, Settings
from ledger.client import CONFIG
from ledger.items import delta_item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

    from demo.engine import Engine

REGION, TABLE = "eu-west-1", "bench-speed"
COUNTER = "stock:85123A"
THREADS = 32
KEY = {"pk": {"S": COUNTER}, "sk": {"S": "total"}}
ONE = {":one": {"N": "1"}}


def add_over_put(engine: Engine, rounds: int = 60, each: int = 50) -> tuple[float, float]:
    """Client CPU of `Ledger.add` over that of a bare boto3 put_item of the same item: medians of ratios in turns.

    (over a client as boto3 makes it, over one with this library's Config: what the library itself adds.)
    """
    engine.create_table(f"{TABLE}-cpu", REGION)
    settings = Settings(table=f"{TABLE}-cpu", region=REGION)
    ledger = Ledger(settings, client=engine.client(REGION, CONFIG))
    bare, tuned = engine.client(REGION, None), engine.client(REGION, CONFIG)
    ratios = []
    for number in range(rounds + 2):
        works = [
            partial(_add, ledger, each),
            *(
                partial(_put, client, settings.table, [ledger.prepare(COUNTER, -6) for _ in range(each)])
                for client in (bare, tuned)
            ),
        ]
        order = (0, 1, 2) if number % 2 else (2, 1, 0)
        spent = {index: _cpu(works[index]) for index in order}
        ratios.append((spent[0] / spent[1], spent[0] / spent[2]))
    warm = ratios[2:]
    return statistics.median(r[0] for r in warm), statistics.median(r[1] for r in warm)


def _cpu(work: Callable[[], None]) -> float:
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


def adds_over_others(engine: Engine, rounds: int = 15, each: int = 5) -> tuple[float, float]:
    """Adds a second of 32 threads on one counter over those of (UpdateItem ADD, optimistic locking): medians in turns.

    All three have a client with this library's Config. Optimistic locking reads strongly, then writes the sum if the
    version is still the one it read, else again; it is slow, and takes part in one round of five.
    """
    engine.create_table(TABLE, REGION)
    clients = [engine.client(REGION, CONFIG) for _ in range(3)]
    ledger = Ledger(Settings(table=TABLE, region=REGION), client=clients[0])
    ours = partial(ledger.add, COUNTER, 1)
    plain = partial(_plain_add, clients[1])
    optimistic = partial(_optimistic_add, clients[2])
    over_plain, over_optimistic = [], []
    with ThreadPoolExecutor(THREADS) as threads:
        _seconds(threads, ours, each), _seconds(threads, plain, each), _seconds(threads, optimistic, 1)  # warm
        for number in range(rounds):
            # Ours first and last, so that a machine that grows slower or faster favours nobody.
            began = _seconds(threads, ours, each)
            other = _seconds(threads, plain, 2 * each)
            over_plain.append(other / (began + _seconds(threads, ours, each)))
            if number % 5 == 0:
                over_optimistic.append(_seconds(threads, optimistic, each) / _seconds(threads, ours, each))
    return statistics.median(over_plain), statistics.median(over_optimistic)


def _seconds(threads: ThreadPoolExecutor, add: Callable[[], object], each: int) -> float:
    """How long every thread takes to make that many adds."""
    began = time.perf_counter()
    for done in [threads.submit(lambda: [add() for _ in range(each)]) for _ in range(THREADS)]:
        done.result()
    return time.perf_counter() - began


def _plain_add(client: DynamoDBClient) -> None:
    client.update_item(
        TableName=TABLE,
        Key={**KEY, "sk": {"S": "plain"}},
        UpdateExpression="ADD amount :one",
        ExpressionAttributeValues=ONE,
    )


def _optimistic_add(client: DynamoDBClient) -> None:
    while True:
        item = client.get_item(TableName=TABLE, Key=KEY, ConsistentRead=True).get("Item")
        amount, version = (int(item[name]["N"]) if item else 0 for name in ("amount", "version"))
        try:
            client.put_item(
                TableName=TABLE,
                Item={**KEY, "amount": {"N": str(amount + 1)}, "version": {"N": str(version + 1)}},
                ConditionExpression="version = :seen" if item else "attribute_not_exists(pk)",
                **({"ExpressionAttributeValues": {":seen": {"N": str(version)}}} if item else {}),
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
        else:
            return
