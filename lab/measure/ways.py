"""The packages that others use, and this library, as ways to count; and the wire that spoils their
requests.

Rule 1: Only the rows of this library import it, so the packages of two rivals need not fit
together, nor fit it.
Rule 2: A rival is the package itself on boto3. `Wire` watches and spoils it at the HTTP session of
its client, below its retries and the SDK's.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import boto3
from botocore.config import Config
from botocore.exceptions import ReadTimeoutError

REGION, LIMIT = "eu-west-1", 10**9
LEFT_MS = 200  # of an invocation
PACK = 38


class Way(NamedTuple):
    """add(counter, key): adds `changes` changes of 1. value(counter): their sum."""

    add: Callable[[str, str], object]
    value: Callable[[str], int]
    changes: int = 1


class Died(BaseException):
    """The process is no more."""


class Wire:
    """The wire of the clients that it watches. lose, die: the number of the answer that is lost, or
    after which the process dies. table: with keys pk and sk; ids: with a key id."""

    def __init__(self, url: str, table: str, ids: str) -> None:
        self.url, self.table, self.ids, self.sent = url, table, ids, 0
        self.units = {"write": 0.0, "read": 0.0}
        self.lose = self.die = -1

    def client(self, config: Config | None = None) -> Any:
        return self.watch(
            boto3.client("dynamodb", region_name=REGION, endpoint_url=self.url, config=config)
        )

    def watch(self, client: Any) -> Any:
        events, session = client.meta.events, client._endpoint.http_session
        events.register(
            "before-parameter-build.dynamodb", lambda params, **_: params.update(_WITH_UNITS)
        )
        events.register("after-call.dynamodb", self._charge)
        send = session.send

        def spoiled(request: Any) -> Any:
            if 0 <= self.die < self.sent:
                raise Died
            answer, number, self.sent = send(request), self.sent, self.sent + 1
            if number == self.lose:
                raise ReadTimeoutError(endpoint_url=self.url)
            if number == self.die:
                raise Died
            return answer

        session.send = spoiled
        return client

    def _charge(self, parsed: Any, model: Any, **_: object) -> None:
        reported = parsed.get("ConsumedCapacity") or []
        kind = "read" if model.name in ("GetItem", "BatchGetItem", "Query") else "write"
        self.units[kind] += sum(
            each["CapacityUnits"]
            for each in (reported if isinstance(reported, list) else [reported])
        )


_WITH_UNITS = {"ReturnConsumedCapacity": "TOTAL"}


def plain(wire: Wire, client: Any = None) -> Way:
    client = client or wire.client()

    def of(counter: str) -> dict[str, Any]:
        return {"TableName": wire.table, "Key": {"pk": {"S": counter}, "sk": {"S": "count"}}}

    one = {"UpdateExpression": "ADD amount :one", "ExpressionAttributeValues": {":one": {"N": "1"}}}
    return Way(
        lambda counter, _: client.update_item(**of(counter), **one),
        lambda counter: int(
            client.get_item(**of(counter), ConsistentRead=True)["Item"]["amount"]["N"]
        ),
    )


def powertools(wire: Wire) -> Way:
    from aws_lambda_powertools.utilities.idempotency import (
        DynamoDBPersistenceLayer,
        IdempotencyConfig,
        idempotent_function,
    )
    from aws_lambda_powertools.utilities.typing import LambdaContext

    class Invocation(LambdaContext):
        @staticmethod
        def get_remaining_time_in_millis() -> int:
            return LEFT_MS

    client = wire.client()
    config = IdempotencyConfig(event_key_jmespath="key", lambda_context=Invocation())
    layer, inner = DynamoDBPersistenceLayer(wire.ids, boto3_client=client), plain(wire, client)

    def handle(event: dict[str, str]) -> dict[str, bool]:
        inner.add(event["counter"], "")
        return {"counted": True}

    once: Any = idempotent_function(
        handle, data_keyword_argument="event", persistence_store=layer, config=config
    )
    return Way(lambda counter, key: once(event={"key": key, "counter": counter}), inner.value)


def pynamodb(wire: Wire) -> Way:
    from pynamodb.attributes import NumberAttribute, UnicodeAttribute
    from pynamodb.models import Model

    class Row(Model):  # type: ignore[misc]
        class Meta:
            table_name, region, host = wire.table, REGION, wire.url

        pk, sk = UnicodeAttribute(hash_key=True), UnicodeAttribute(range_key=True)
        amount = NumberAttribute(default=0)

    wire.watch(Row._get_connection().connection.client)
    return Way(
        lambda counter, _: Row(counter, "count").update(actions=[Row.amount.add(1)]),
        plain(wire).value,
    )


def zae_limiter(wire: Wire) -> Way:
    from zae_limiter import Limit, SyncRateLimiter, SyncRepository

    repository = SyncRepository(
        f"{wire.table}-zae", REGION, wire.url, _skip_deprecation_warning=True
    )
    repository.create_table()
    wire.watch(repository._get_client())
    limiter, limits = SyncRateLimiter(repository=repository), [Limit.per_day("n", LIMIT)]

    def add(counter: str, _: str) -> None:
        with limiter.acquire(entity_id=counter, resource="r", limits=limits, consume={"n": 1}):
            """The lease is kept."""

    return Way(
        add, lambda counter: repository.get_buckets(counter, "r")[0].total_consumed_milli // 1_000
    )


def ours(wire: Wire, changes: int = 1, prefix: str = "") -> Way:
    from datetime import UTC, datetime

    from ledger import Change, Ledger, Limit, Settings
    from ledger.tables.boto import CONFIG
    from reader import Reader

    at = datetime.now(UTC)
    settings = Settings(
        table=wire.table, region=REGION, limits={"seats:": Limit(ceiling=LIMIT, region=REGION)}
    )
    client = wire.client(CONFIG)
    ledger, reader = Ledger(settings, client=client), Reader(settings, client=client)

    def add(counter: str, key: str) -> object:
        return ledger.add(f"{prefix}{counter}", 1, idempotency_key=key, at=at)

    def add_pack(counter: str, key: str) -> None:
        named = [Change(counter, 1, f"{key}/{number}", at) for number in range(changes)]
        for outcome in ledger.add_many(named, pack=True):
            if isinstance(outcome, Exception):
                raise outcome

    return Way(
        add if changes == 1 else add_pack,
        lambda counter: reader.value(f"{prefix}{counter}"),
        changes,
    )


PLAIN = "plain ADD"
WAYS: dict[str, Callable[[Wire], Way]] = {
    PLAIN: plain,
    "pynamodb, its ADD": pynamodb,
    "Powertools idempotency round an ADD": powertools,
    "zae-limiter, acquire": zae_limiter,
    "this library, with a key": ours,
    f"this library, packs of {PACK}": lambda wire: ours(wire, PACK),
    "this library, a limit": lambda wire: ours(wire, prefix="seats:"),
}

APART = ("pynamodb, its ADD", "zae-limiter, acquire")
"""The ways by packages of requirements/rivals.lock, which .venv does not have."""
