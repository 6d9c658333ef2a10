"""The meter against the ConsumedCapacity of DynamoDB Local: equal, but for the differences that are named."""

from typing import Any

import pytest

from lab.compare import tables
from lab.compare.capacity import Capacity
from lab.compare.cost import on_one_counter, shop_events, spend
from lab.designs.trial import APPROACHES, Trial
from lab.engines.dynamodb_local import DynamoDBLocal
from lab.meters.meter import Meter
from ledger.requests import Key, keyed
from ledger.units import Cost

BY_NAME = {approach.name: approach for approach in APPROACHES}
ABSENT = keyed(Key("absent", "s"))


class Both:
    """A client that a meter and the engine account for."""

    def __init__(self, engine: DynamoDBLocal) -> None:
        trial = Trial(engine, APPROACHES[0])
        self.client: Any = trial.client
        self.table = trial.name
        meter = self.meter = Meter()
        meter.attach(self.client)
        self.capacity = Capacity(self.client)

    def units(self, operation: str) -> tuple[float, float]:
        cost = self.meter.costs().get(operation, Cost())
        return cost.read_units + cost.write_units, self.capacity.units[operation]


@pytest.fixture
def both(dynamodb_local: DynamoDBLocal) -> Both:
    return Both(dynamodb_local)


@pytest.mark.parametrize("name", ["atomic ADD", "optimistic, entity tag", "item collection", "set of ids"])
def test_the_engine_charges_single_items_and_queries_as_the_meter_does(
    dynamodb_local: DynamoDBLocal, name: str
) -> None:
    found = spend(dynamodb_local, on_one_counter(shop_events(count=6)), BY_NAME[name])
    compared = {operation: cost for operation, cost in found.metered.items() if operation in found.told}
    assert {"UpdateItem", "PutItem"} & compared.keys()
    for operation, cost in compared.items():
        if operation != "Scan":
            assert cost.read_units + cost.write_units == found.told[operation], operation


def test_a_large_item_costs_both_the_same(both: Both) -> None:
    large = {**keyed(Key("p", "s")), "b": {"B": bytes(5_000)}}
    both.client.put_item(TableName=both.table, Item=large)
    both.client.get_item(TableName=both.table, Key=keyed(Key("p", "s")), ConsistentRead=True)
    both.client.delete_item(TableName=both.table, Key=keyed(Key("p", "s")))
    assert [both.units(name) for name in ("PutItem", "GetItem", "DeleteItem")] == [(5, 5), (2, 2), (5, 5)]


def test_the_engine_charges_nothing_for_what_is_not_there_in_a_batch_or_a_page(both: Both) -> None:
    both.client.batch_get_item(RequestItems={both.table: {"Keys": [ABSENT], "ConsistentRead": True}})
    both.client.scan(TableName=both.table, ConsistentRead=True)
    assert (both.units("BatchGetItem"), both.units("Scan")) == ((1, 0), (1, 0))


@pytest.mark.parametrize(("sizes", "units"), [([700, 700], (4, 2)), ([1_500, 700], (6, 6)), ([2_500, 2_500], (12, 6))])
def test_the_engine_counts_items_of_as_many_units_once(
    both: Both, sizes: list[int], units: tuple[float, float]
) -> None:
    items = [{**keyed(Key("p", str(n))), "b": {"B": bytes(size)}} for n, size in enumerate(sizes)]
    both.client.transact_write_items(TransactItems=[{"Put": {"TableName": both.table, "Item": i}} for i in items])
    assert both.units("TransactWriteItems") == units


def test_a_difference_is_told_with_its_reason(dynamodb_local: DynamoDBLocal) -> None:
    found = spend(dynamodb_local, on_one_counter(shop_events(count=4)), BY_NAME["transaction, marker"])
    lines = {line.split()[0]: line for line in tables.against_engine([found])}
    assert lines["TransactWriteItems"].endswith("counted once")
    assert len(lines["GetItem"].split()) == 4
    assert max(map(len, lines.values())) <= 100
