"""An AWS account for the pages of a module: moto, with the table `counters` in it, without lag
between two Regions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ledger import Cost, Settings
from ledger.tables import boto as client
from reader import Reader
from tests.docs.pages import RECIPES, run
from tests.world import create_table, without_statements

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

REGION, OTHER = "eu-west-1", "us-east-1"
SETTINGS = Settings(table="counters", region=REGION)
TABLES = {"counters": ("pk", "sk"), "old": ("id",)}
ASKED = "provide-client-params.dynamodb"
Names = dict[str, Any]


def value(counter: str) -> int:
    return Reader(SETTINGS).read(counter).value


@dataclass(frozen=True)
class Account:
    """`dynamodb` is the client that this library makes for itself: what `Ledger(settings)` sends
    goes through it.
    """

    dynamodb: DynamoDBClient

    def without_shape(self) -> None:
        """Each page is a program of its own, with limits of its own; here all of them share a
        table.
        """
        self.dynamodb.delete_item(
            TableName="counters", Key={"pk": {"S": "shape"}, "sk": {"S": "shape"}}
        )

    @contextmanager
    def bill(self, *others: DynamoDBClient) -> Iterator[list[Cost]]:
        """What is asked for inside, through this client and the `others`: the one cost that the
        list holds after.
        """
        bill, costs = list[Cost](), list[Cost]()
        for each in (self.dynamodb, *others):
            each.meta.events.register(
                ASKED, lambda params, model, **_: costs.append(cost_of(model.name, params)), ASKED
            )
        yield bill
        for each in (self.dynamodb, *others):
            each.meta.events.unregister(ASKED, unique_id=ASKED)
        bill.append(sum(costs, start=Cost()))


def cost_of(operation: str, request: Names) -> Cost:
    """Where every item is below a KB; this engine takes no statements."""
    if operation in ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"):
        return Cost(1, 1, 0, 2 * len(request.get("TransactItems", ())) or 1)
    if "Statement" in operation:
        return Cost(1, 1)
    (asked,) = request.get("RequestItems", {"": request}).values()
    return Cost(1, 1, len(asked.get("Keys", "1")) * (1 if asked.get("ConsistentRead") else 0.5))


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    from moto import mock_aws  # here, for those who run other tests
    from moto.core.botocore_stubber import BotocoreStubber
    from moto.core.models import DEFAULT_ACCOUNT_ID
    from moto.dynamodb.models import dynamodb_backends

    lock, answer = threading.RLock(), BotocoreStubber.process_request

    def one_at_a_time(stubber: BotocoreStubber, request: Any) -> Any:
        """moto's tables are not made for the threads of a compactor."""
        with lock:
            return answer(stubber, request)

    with mock_aws(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(BotocoreStubber, "process_request", one_at_a_time)
        patch.setenv("LEDGER_TABLE", "counters")
        patch.setenv("AWS_REGION", REGION)
        # a client from before knows nothing of moto, nor does a session
        client._client.cache_clear()
        client._session.cache_clear()
        made = Account(without_statements(client.make_client(REGION)))
        for name, keys in TABLES.items():
            create_table(made.dynamodb, name, **dict.fromkeys(keys, "S"))
        backends = dynamodb_backends[DEFAULT_ACCOUNT_ID]
        backends[OTHER].tables = backends[REGION].tables
        without_statements(client.make_client(OTHER))
        yield made
        client._client.cache_clear()


@pytest.fixture(scope="module")
def page(account: Account) -> Callable[[str | Path], Names]:
    """What a page's Python leaves; a recipe by its name. It runs once, on the account."""

    @cache
    def ran(path: Path) -> Names:
        account.without_shape()
        return run(path)

    def names(path: str | Path) -> Names:
        left = ran(RECIPES / f"{path}.md" if isinstance(path, str) else path)
        account.without_shape()
        return left

    return names
