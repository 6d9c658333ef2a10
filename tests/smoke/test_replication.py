"""S4: what another Region sees of transactions, of one key written in both, and what both streams
say.

Each pair of items is new, so what is seen of it is of one transaction; the last one of it is looked
for first.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from compactor.commit import NEVER
from lab.smoke.visit import Visit
from ledger.core.errors import TransactionConflict
from ledger.core.requests import Get, Key, Put, Table, Transact, keyed
from ledger.tables.dynamo import DynamoTable

PAIRS, KEYS, THREADS, ARRIVE_S, PAUSE_S = 500, 20, 8, 60, 0.01


class Pair(NamedTuple):
    """A transaction: in how many seconds it arrived, whether it was seen half, whether a strong
    read at home saw it.
    """

    lag_s: float | None
    half: bool
    strong: bool


def key(name: str, sk: str = "a") -> Key:
    return Key(f"smoke#{name}", sk)


def written(name: str) -> Transact:
    return Transact(tuple(Put(keyed(key(name, sk))) for sk in "ab"))


def seconds(done: Callable[[], bool]) -> float | None:
    began = time.monotonic()
    while not done():
        if time.monotonic() - began > ARRIVE_S:
            return None
        time.sleep(PAUSE_S)
    return time.monotonic() - began


@pytest.fixture(scope="module")
def tables(visit: Visit) -> tuple[Table, Table]:
    clients = {region: visit.client("dynamodb", region) for region in visit.regions}
    here, there = (
        DynamoTable(visit.table, region, clients.__getitem__) for region in visit.regions
    )
    return here, there


@pytest.fixture(scope="module")
def pairs(tables: tuple[Table, Table]) -> list[Pair]:
    here, there = tables

    def pair(number: int) -> Pair:
        here.answer(written(f"pair/{number}"))
        strong, seen = (
            here.answer(Get(key(f"pair/{number}", "b"))) is not None,
            set[tuple[bool, ...]](),
        )

        def arrived() -> bool:
            seen.add(
                found := tuple(
                    there.answer(Get(key(f"pair/{number}", sk))) is not None for sk in "ba"
                )
            )
            return all(found)

        # the other half may have come between
        return Pair(seconds(arrived), (True, False) in seen, strong)

    with ThreadPoolExecutor(THREADS) as pool:
        return [*pool.map(pair, range(PAIRS))]


@pytest.mark.shows(9)
def test_every_transaction_arrives_elsewhere(
    visit: Visit, pairs: list[Pair], say: Callable[[str], None]
) -> None:
    lags = sorted(pair.lag_s for pair in pairs if pair.lag_s is not None)
    assert len(lags) == PAIRS, f"{PAIRS - len(lags)} did not arrive in {ARRIVE_S} s"
    if visit.engine:
        pytest.skip("an engine replicates at once")
    p50, p99 = (1_000 * lags[PAIRS * part // 100] for part in (50, 99))
    say(
        f"{sum(pair.half for pair in pairs)} of {PAIRS} were seen half; lag {p50:.0f} ms, p99 "
        f"{p99:.0f} ms"
    )


@pytest.mark.shows(10)
def test_a_strong_read_sees_the_write_before_it(
    pairs: list[Pair], say: Callable[[str], None]
) -> None:
    assert sum(pair.strong for pair in pairs) == PAIRS
    say(f"{PAIRS} of {PAIRS}")


@pytest.mark.shows(11)
def test_one_key_written_in_both_regions_ends_the_same(
    on_aws: Visit, tables: tuple[Table, Table], say: Callable[[str], None]
) -> None:
    ends, began = Counter[str](), time.monotonic()
    for number in range(KEYS):
        name = key(f"both/{number}")
        with ThreadPoolExecutor(2) as pool:
            puts = [
                pool.submit(table.answer, Put(keyed(name, by={"S": str(n)})))
                for n, table in enumerate(tables)
            ]
            assert [put.result() for put in puts] == [None, None]
        time.sleep(1)
        while len(found := {table.answer(Get(name))["by"]["S"] for table in tables}) > 1:
            assert time.monotonic() - began < KEYS * ARRIVE_S, f"{name} differs"
            time.sleep(PAUSE_S)
        ends += Counter(found)
    say(f"the first Region's won {ends['0']} times, the second's {ends['1']}")


@pytest.mark.shows(12)
def test_a_put_meets_the_transaction_before_its_condition(
    on_aws: Visit, tables: tuple[Table, Table], say: Callable[[str], None]
) -> None:
    """The put never writes, and is sent again and again while a transaction writes its item."""
    conflicts = 0
    for number in range(PAIRS):
        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(tables[0].answer, written(f"against/{number}"))
            while not writing.done():
                try:
                    tables[0].answer(Put(keyed(key(f"against/{number}", "b")), NEVER))
                except TransactionConflict:
                    conflicts += 1
                    break
            writing.result()
    if not conflicts:
        pytest.skip("no put met a transaction")
    say(f"{conflicts} conflicts of puts whose condition would have refused them")


def inserts(visit: Visit, region: str) -> Iterator[str]:
    """The pairs of which a Region's stream has the first item's insert, each time that it does."""
    streams = visit.client("dynamodbstreams", region)
    arn = visit.client("dynamodb", region).describe_table(TableName=visit.table)["Table"][
        "LatestStreamArn"
    ]
    for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        start = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        iterator, empty = streams.get_shard_iterator(**start)["ShardIterator"], 0
        while iterator and empty < 5:  # an open shard has no end
            page = streams.get_records(ShardIterator=iterator)
            iterator, empty = page.get("NextShardIterator"), 0 if page["Records"] else empty + 1
            for record in page["Records"]:
                pk, sk = (record["dynamodb"]["Keys"][name]["S"] for name in ("pk", "sk"))
                if record["eventName"] == "INSERT" and pk.startswith("smoke#pair/") and sk == "a":
                    yield pk


@pytest.mark.shows(13)
def test_each_stream_has_every_insert_once(
    visit: Visit, pairs: list[Pair], say: Callable[[str], None]
) -> None:
    for region in visit.regions:
        found = Counter(inserts(visit, region))
        assert (len(found), {*found.values()}) == (len(pairs), {1}), region
    say(f"{PAIRS} of {PAIRS} in both Regions")
