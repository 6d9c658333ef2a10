"""Replication between Regions of the embedded DynamoDB; skipped where that is not installed."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from lab.engines.ministack import Engine
from lab.engines.replicator import ReplicationError, Replicator

A, B = "eu-west-1", "us-east-1"


class TwoRegions:
    """One new table in two Regions, and its replicator."""

    def __init__(self, engine: Engine, table: str) -> None:
        for region in (A, B):
            engine.create_table(table, region)
        self.table = table
        self.clients: dict[str, Any] = {region: engine.client(region) for region in (A, B)}
        self.replicator = Replicator(engine, table, (A, B), random.Random(7), 0, 20, poll_ms=5)

    def put(self, region: str, name: str, value: int, **more: Any) -> None:
        item = {"pk": {"S": name}, "sk": {"S": "s"}, "value": {"N": str(value)}}
        self.clients[region].put_item(TableName=self.table, Item=item | more)

    def items(self, region: str) -> dict[str, Any]:
        found = self.clients[region].scan(TableName=self.table, ConsistentRead=True)["Items"]
        return {item["pk"]["S"]: item for item in found}

    def values(self, region: str) -> dict[str, int]:
        return {name: int(item["value"]["N"]) for name, item in self.items(region).items()}


def test_writes_and_deletes_reach_the_other_region_unchanged_and_the_last_of_each_item_wins(
    engine: Engine, table_names: Iterator[str]
) -> None:
    two = TwoRegions(engine, next(table_names))
    nested = {"M": {"list": {"L": [{"NULL": True}, {"BOOL": False}, {"S": ""}]}}}
    two.put(A, "rich", 1, bytes={"B": bytes(range(256)) * 1_000}, nested=nested, numbers={"NS": ["1", "2.5"]})
    rng, last = random.Random(11), {"rich": 1}
    with two.replicator:
        for value in range(100):
            name = f"item-{rng.randrange(5)}"
            two.put(rng.choice((A, B)), name, value)
            last[name] = value
        two.replicator.drain()
        assert (two.values(A), two.values(B)) == (last, last)
        assert two.items(A) == two.items(B)
        two.clients[B].delete_item(TableName=two.table, Key={"pk": {"S": "rich"}, "sk": {"S": "s"}})
        two.replicator.drain()
        assert "rich" not in two.values(A)


def test_nothing_crosses_a_partition_and_everything_crosses_after_it(
    engine: Engine, table_names: Iterator[str]
) -> None:
    two = TwoRegions(engine, next(table_names))
    with two.replicator:
        two.replicator.partition()
        two.put(B, "x", 1)
        two.put(A, "x", 2)
        with pytest.raises(ReplicationError, match="partitioned, call heal"):
            two.replicator.drain()
        assert two.values(B) == {"x": 1}
        two.replicator.heal()
        two.replicator.drain()
        assert (two.values(A), two.values(B)) == ({"x": 2}, {"x": 2})


def test_an_error_of_the_thread_is_raised_by_drain_and_stop(engine: Engine, table_names: Iterator[str]) -> None:
    two = TwoRegions(engine, next(table_names))
    with pytest.raises(ReplicationError, match=r"failed.*was closed"), two.replicator:  # noqa: PT012
        two.clients[B].delete_table(TableName=two.table)
        with pytest.raises(ReplicationError, match=r"not drained.*was closed"):
            two.replicator.drain()
