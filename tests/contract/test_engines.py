"""Where engines differ from AWS's documentation (docs/testing.md): each fact is asked of each
engine.

A probe says whether the engine does what is documented. A fact names the engines that are known not
to, so that a new version which changes its mind fails here, and the page is corrected.
Sources: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/ and
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

HOME = "eu-west-1"
MINISTACK, LOCAL = "engine", "dynamodb_local"
HANG_S = 120.0
LAST = "~"
MINISTACK_DIGITS = 30


@dataclass(frozen=True)
class Engine:
    """A client, a streams client and an empty table."""

    client: Any
    streams: Any
    table: str

    def put(self, sk: str, **more: Any) -> None:
        self.client.put_item(TableName=self.table, Item=key(sk) | more)

    def transact(self, *sks: str, **more: Any) -> Any:
        actions = [{"Put": {"TableName": self.table, "Item": key(sk) | more}} for sk in sks]
        return self.client.transact_write_items(
            TransactItems=actions, ReturnConsumedCapacity="TOTAL"
        )

    def insert(self, sk: str) -> Any:
        statement = {
            "Statement": f"INSERT INTO \"{self.table}\" VALUE {{'pk': ?, 'sk': ?}}",
            "Parameters": list(key(sk).values()),
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        return self.client.batch_execute_statement(Statements=[statement])

    def records(self) -> list[Any]:
        """The stream's records up to that of a write of now: what is not among them is not in
        the stream.
        """
        self.put(LAST)
        arn = self.client.describe_table(TableName=self.table)["Table"]["LatestStreamArn"]
        shard = self.streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0][
            "ShardId"
        ]
        start = {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
        iterator = self.streams.get_shard_iterator(**start)["ShardIterator"]
        found: list[Any] = []
        deadline = time.monotonic() + HANG_S
        while not found or found[-1]["Keys"]["sk"]["S"] != LAST:
            page = self.streams.get_records(ShardIterator=iterator)
            found += (record["dynamodb"] for record in page["Records"])
            iterator = page["NextShardIterator"]
            if time.monotonic() > deadline:
                raise TimeoutError(f"a write is not in the stream after {HANG_S:.0f} s: {found}")
        return found[:-1]


Probe = Callable[[Engine], bool]


def key(sk: str) -> dict[str, Any]:
    return {"pk": {"S": "p"}, "sk": {"S": sk}}


def shows_the_item_that_a_partiql_insert_met(engine: Engine) -> bool:
    engine.put("a")
    [answer] = engine.insert("a")["Responses"]
    return "Item" in answer["Error"]


def counts_units_by_size(engine: Engine) -> bool:
    item = key("a") | {"padding": {"B": b"x" * 2_500}}
    put = engine.client.put_item(TableName=engine.table, Item=item, ReturnConsumedCapacity="TOTAL")
    transacted = engine.transact("b")["ConsumedCapacity"]
    return put["ConsumedCapacity"]["CapacityUnits"] == 3 and [
        each["CapacityUnits"] for each in transacted
    ] == [2]


def puts_a_partiql_insert_into_the_stream(engine: Engine) -> bool:
    engine.put("a")
    engine.insert("b")
    return [record["Keys"]["sk"]["S"] for record in engine.records()] == ["a", "b"]


def numbers_writes_over_all_regions(engine: Engine) -> bool:
    """Not documented, and not so on AWS: lab.engines.replicator orders the writes of all Regions
    by it.
    """
    engine.put("a")
    return [len(record["SequenceNumber"]) for record in engine.records()] == [MINISTACK_DIGITS]


def shows_an_empty_map_in_the_stream(engine: Engine) -> bool:
    """DynamoDB Local's stream shows nothing there."""
    engine.put("a", held={"M": {}})
    return [record["NewImage"]["held"] for record in engine.records()] == [{"M": {}}]


DIFFER: Mapping[Probe, set[str]] = {
    shows_the_item_that_a_partiql_insert_met: {MINISTACK, LOCAL},
    counts_units_by_size: set(),
    puts_a_partiql_insert_into_the_stream: {MINISTACK},
    numbers_writes_over_all_regions: {LOCAL},
    shows_an_empty_map_in_the_stream: {LOCAL},
}


@pytest.mark.parametrize("name", [MINISTACK, LOCAL])
@pytest.mark.parametrize("probe", DIFFER, ids=lambda probe: probe.__name__)
def test_an_engine_differs_only_where_the_page_says(
    probe: Probe, name: str, request: pytest.FixtureRequest, table_names: Iterator[str]
) -> None:
    engine, table = request.getfixturevalue(name), next(table_names)
    engine.create_table(table, HOME)
    asked = Engine(engine.client(HOME), engine.stream_client(HOME), table)
    assert probe(asked) == (name not in DIFFER[probe])
