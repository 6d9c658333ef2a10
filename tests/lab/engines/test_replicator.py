"""Replication between Regions of the embedded DynamoDB; skipped where that is not installed."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from lab.engines.ministack import Engine
from lab.engines.replicator import ReplicationError, Replicator

A, B, C = "eu-west-1", "us-east-1", "ap-south-1"
TABLE_NUMBERS = count(1)


@dataclass
class World:
    """One new table in some Regions, and its replicator."""

    table: str
    clients: Mapping[str, Any]
    replicator: Replicator

    def put(self, region: str, name: str, value: int) -> None:
        self.clients[region].put_item(TableName=self.table, Item=item(name, value))

    def values(self, region: str) -> dict[str, int]:
        items = self.clients[region].scan(TableName=self.table, ConsistentRead=True)["Items"]
        return {each["pk"]["S"]: int(each["value"]["N"]) for each in items}


def item(name: str, value: int) -> dict[str, Any]:
    return {"pk": {"S": name}, "sk": {"S": "s"}, "value": {"N": str(value)}}


def world(engine: Engine, *regions: str, client: Callable[[str], Any] | None = None) -> World:
    """`client`: makes the replicator's."""
    table = f"replicated-{next(TABLE_NUMBERS)}"
    for region in regions:
        engine.create_table(table, region)
    clients: Any = SimpleNamespace(client=client or engine.client, stream_client=engine.stream_client)
    replicator = Replicator(clients, table, regions, random.Random(7), 0, 20, poll_ms=5)
    return World(table, {region: engine.client(region) for region in regions}, replicator)


def test_writes_and_deletes_also_from_before_the_start_reach_the_other_region_unchanged(engine: Engine) -> None:
    two = world(engine, A, B)
    rich = {
        **item("x", 1),
        "bytes": {"B": bytes(range(256)) * 1_000},
        "nested": {"M": {"list": {"L": [{"NULL": True}, {"BOOL": False}, {"S": ""}]}}},
        "numbers": {"NS": ["1", "2.5"]},
    }
    two.clients[A].put_item(TableName=two.table, Item=rich)
    with two.replicator:
        two.put(A, "y", 2)
        two.replicator.drain()
        assert two.values(B) == {"x": 1, "y": 2}
        held = [two.clients[region].get_item(TableName=two.table, Key=key("x"))["Item"] for region in (A, B)]
        assert held[0] == held[1]
        two.clients[B].delete_item(TableName=two.table, Key=key("x"))
        two.replicator.drain()
        assert two.values(A) == {"y": 2}


def key(name: str) -> dict[str, Any]:
    return {"pk": {"S": name}, "sk": {"S": "s"}}


def test_writes_in_three_regions_reach_all_of_them(engine: Engine) -> None:
    three = world(engine, A, B, C)
    with three.replicator:
        for number in range(90):
            three.put((A, B, C)[number % 3], f"item-{number}", number)
        three.replicator.drain()
        expected = {f"item-{number}": number for number in range(90)}
        assert [three.values(region) for region in (A, B, C)] == [expected] * 3
        replicas = three.replicator.replicas
        assert (replicas.applied, replicas.pending, replicas.overwritten) == (180, 0, 0)


def test_of_two_concurrent_writes_of_an_item_the_last_wins_everywhere(engine: Engine) -> None:
    two = world(engine, A, B)
    with two.replicator:
        two.replicator.partition()
        two.put(B, "x", 1)
        two.put(A, "x", 2)
        two.replicator.heal()
        two.replicator.drain()
        assert (two.values(A), two.values(B), two.replicator.replicas.overwritten) == ({"x": 2}, {"x": 2}, 1)


def test_regions_that_fight_over_the_same_items_converge_to_the_last_writers(engine: Engine) -> None:
    two = world(engine, A, B)
    rng = random.Random(11)
    last = {}
    with two.replicator:
        for value in range(400):
            name = f"item-{rng.randrange(5)}"
            two.put(rng.choice((A, B)), name, value)
            last[name] = value
        two.replicator.drain()
        assert (two.values(A), two.values(B)) == (last, last)
        assert two.replicator.replicas.overwritten > 0


def test_nothing_crosses_a_partition_and_everything_crosses_after_it(engine: Engine) -> None:
    two = world(engine, A, B)
    with two.replicator:
        two.replicator.partition()
        two.put(A, "x", 1)
        with pytest.raises(ReplicationError, match="partitioned, call heal"):
            two.replicator.drain()
        assert two.values(B) == {}
        two.replicator.heal()
        two.replicator.drain()
        assert two.values(B) == {"x": 1}


class Refusing:
    """A client that refuses all but the first item of each of its first three batches."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.refused = 0

    def describe_table(self, **request: Any) -> Any:
        return self._client.describe_table(**request)

    def batch_write_item(self, RequestItems: dict[str, list[Any]]) -> Any:
        ((table, writes),) = RequestItems.items()
        cut = 1 if self.refused < 3 else len(writes)
        self.refused += cut < len(writes)
        self._client.batch_write_item(RequestItems={table: writes[:cut]})
        return {"UnprocessedItems": {table: writes[cut:]} if writes[cut:] else {}}


def test_unprocessed_items_are_sent_again(engine: Engine) -> None:
    refusing = Refusing(engine.client(B))
    two = world(engine, A, B, client=lambda region: refusing if region == B else engine.client(region))
    for number in range(60):
        two.put(A, f"item-{number}", number)
    with two.replicator:
        two.replicator.drain()
    assert refusing.refused == 3
    assert two.values(B) == two.values(A)


def test_an_error_of_the_thread_is_raised_by_drain_and_stop(engine: Engine) -> None:
    two = world(engine, A, B)
    two.replicator.start()
    two.clients[B].delete_table(TableName=two.table)
    with pytest.raises(ReplicationError, match="was closed"):
        two.replicator.drain()
    with pytest.raises(ReplicationError, match="was closed"):
        two.replicator.stop()
