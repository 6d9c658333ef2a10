"""`insert_only` on real engines: what a role that may insert and nothing else adds, and what it
is told.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from compactor import Compactor
from lab.smoke.visit import visit_of
from ledger import Change, Ledger, Settings
from ledger.core import items
from ledger.core.errors import NotAllowed, TokenConflict
from ledger.core.requests import Page, Query
from ledger.core.values import Lane
from ledger.tables.dynamo import DynamoTable
from reader import Reader
from tests.contract.conftest import OF_A_RUN, SMOKE, emptied
from tests.world import outcomes_of

HOME = "eu-west-1"
COUNTER = "stock:85123A"
KEYED: dict[str, Any] = {
    "idempotency_key": "536365/1",
    "at": datetime(2010, 12, 1, 8, 26, tzinfo=UTC),
}
CHANGES = [Change(COUNTER, n, f"order/{n}", KEYED["at"]) for n in range(1, 4)]
WRITES = {"put_item", "update_item", "delete_item", "batch_write_item", "transact_write_items"}
READS = {"get_item", "batch_get_item", "query", "scan"}


class Narrow:
    """A client of a role that is denied some operations; keeps what it was asked."""

    def __init__(self, client: Any, denied: set[str]) -> None:
        self._client, self._denied = client, denied
        self.asked: list[str] = []

    def __getattr__(self, operation: str) -> Any:
        def call(**arguments: Any) -> Any:
            self.asked.append(operation)
            if operation in self._denied:
                raise ClientError(
                    {"Error": {"Code": "AccessDeniedException", "Message": "no"}}, operation
                )
            return getattr(self._client, operation)(**arguments)

        return call


@pytest.fixture(params=OF_A_RUN or ["engine", "dynamodb_local"])
def client(request: pytest.FixtureRequest, table_names: Iterator[str]) -> Any:
    if request.param in OF_A_RUN:
        return emptied(visit_of(SMOKE))
    engine, name = request.getfixturevalue(request.param), next(table_names)
    engine.create_table(name, HOME)
    made = engine.client(HOME)
    made.table_name = name
    return made


def settings(client: Any) -> Settings:
    return Settings(
        table=client.table_name, region=HOME, insert_only=True, fold_min=1, allowed_lateness_ms=0
    )


def role(client: Any, denied: set[str]) -> tuple[Ledger, Narrow]:
    narrow = Narrow(client, denied)
    return Ledger(settings(client), client=cast(Any, narrow)), narrow


def value(client: Any) -> int:
    return Reader(settings(client), client=client).read(COUNTER).value


def test_a_role_that_may_insert_and_look_has_every_outcome(client: Any) -> None:
    ledger, narrow = role(client, WRITES)
    assert ledger.add(COUNTER, -6, **KEYED).outcome == "recorded"
    assert ledger.add(COUNTER, -6, **KEYED).outcome == "replayed"
    with pytest.raises(TokenConflict, match="already stands for a change of -6"):
        ledger.add(COUNTER, -7, **KEYED)
    assert outcomes_of(ledger.add_many(CHANGES)) == ["recorded"] * 3
    again = [*CHANGES, Change(COUNTER, 9, "order/1", KEYED["at"])]
    assert outcomes_of(ledger.add_many(again)) == ["replayed"] * 3 + ["TokenConflict"]
    assert outcomes_of(ledger.add_many(CHANGES, pack=True)) == ["accepted"] * 3
    assert outcomes_of(ledger.add_many(CHANGES, pack=True)) == ["accepted"] * 3
    assert value(client) == -6 + 1 + 2 + 3
    assert not WRITES & {*narrow.asked}


def test_a_role_that_may_only_insert_is_always_accepted(
    client: Any,
) -> None:
    ledger, narrow = role(client, WRITES | READS)
    assert ledger.add(COUNTER, -6, **KEYED).outcome == "recorded"
    assert ledger.add(COUNTER, -6, **KEYED).outcome == "accepted"
    assert ledger.add(COUNTER, -6, **KEYED).outcome == "accepted"
    assert outcomes_of(ledger.add_many(CHANGES)) == ["recorded"] * 3
    assert outcomes_of(ledger.add_many(CHANGES)) == ["accepted"] * 3
    assert value(client) == -6 + 1 + 2 + 3
    assert {*narrow.asked} <= {"execute_statement", "batch_execute_statement", "get_item"}
    compactor = Compactor(settings(client), clients={HOME: client})
    assert compactor.compact(COUNTER).folded == 4
    assert value(client) == -6 + 1 + 2 + 3
    assert compactor.verify(COUNTER).ok
    # another change under the key: the earlier counts
    assert ledger.add(COUNTER, -7, **KEYED).outcome == "accepted"
    assert value(client) == -6 + 1 + 2 + 3


def test_a_statement_replaces_nothing(
    client: Any,
) -> None:
    table = DynamoTable.of(settings(client), {HOME: client})
    there = items.delta_item(role(client, set())[0].add(COUNTER, -6, **KEYED).delta)
    forged = {**there, "change": {"N": "1000000"}}
    statement = {
        "Statement": f"INSERT INTO \"{client.table_name}\" VALUE {{'pk': ?, 'sk': ?, 'change': ?}}"
    }
    with pytest.raises(ClientError, match="Duplicate"):
        client.execute_statement(**statement, Parameters=list(forged.values()))
    ledger, _ = role(client, {"execute_statement", "batch_execute_statement"})
    with pytest.raises(NotAllowed):
        ledger.add(COUNTER, 1)
    for pack in (False, True):
        assert outcomes_of(ledger.add_many(CHANGES, pack=pack)) == ["NotAllowed"] * 3
    page: Page = table.answer(Query(items.delta_pk(Lane(HOME, 0, COUNTER))))
    assert page.items == (there,)
