"""An AWS account for the pages of a module: moto, with the table `counters` in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from ledger import Settings
from ledger.dynamo import client
from reader import Reader
from tests.world import without_statements

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

REGION = "eu-west-1"
SETTINGS = Settings(table="counters", region=REGION)


def value(counter: str) -> int:
    return Reader(SETTINGS).read(counter).value


@dataclass
class Bill:
    """Requests and write units, by the rules of ledger/cost.py."""

    requests: int = 0
    write_units: int = 0


@dataclass(frozen=True)
class Account:
    """`dynamodb` is the client that this library makes for itself: what `Ledger(settings)` sends goes through it."""

    dynamodb: DynamoDBClient

    def create_table(self, name: str, *keys: str) -> None:
        kinds = zip(keys, ("HASH", "RANGE"), strict=False)
        self.dynamodb.create_table(
            TableName=name,
            KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in kinds],  # type: ignore[typeddict-item]
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
            BillingMode="PAY_PER_REQUEST",
        )

    def without_shape(self) -> None:
        """Each page is a program of its own, with limits of its own; here all of them share a table."""
        self.dynamodb.delete_item(TableName="counters", Key={"pk": {"S": "shape"}, "sk": {"S": "shape"}})

    @contextmanager
    def bill(self, *others: DynamoDBClient, key: tuple[str, ...] = ("pk", "sk")) -> Iterator[Bill]:
        """What is written inside, through this client and the `others`. `key`: of all tables."""
        from lab.measure.meter import Meter

        bill, meter = Bill(), Meter(key)
        for each in (self.dynamodb, *others):
            meter.attach(each)
        yield bill
        cost = meter.total()
        bill.requests, bill.write_units = cost.requests, cost.write_units


def _one_at_a_time(patch: pytest.MonkeyPatch) -> None:
    """Let moto answer one request after the other: its tables are not made for the threads of a compactor."""
    from moto.core.botocore_stubber import BotocoreStubber

    lock, answer = threading.RLock(), BotocoreStubber.process_request

    def process_request(stubber: BotocoreStubber, request: Any) -> Any:
        with lock:
            return answer(stubber, request)

    patch.setattr(BotocoreStubber, "process_request", process_request)


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    from moto import mock_aws  # here, for those who run other tests

    with mock_aws(), pytest.MonkeyPatch.context() as patch:
        _one_at_a_time(patch)
        client._client.cache_clear()  # a client from before knows nothing of moto
        made = Account(without_statements(client.make_client(REGION)))
        made.create_table("counters", "pk", "sk")
        yield made
        client._client.cache_clear()
