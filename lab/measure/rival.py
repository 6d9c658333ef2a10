"""One rival, in a process of its own: what a change takes, and how often it counts when something fails.

Rule 1: Only the rows of this library import it, so that the packages of two rivals need not fit together, nor ours.
Rule 2: A rival is the package itself on boto3. It is watched and spoiled at the HTTP session of its client, below its
retries and the SDK's.
Rule 3: Callers send a change with the same key until it is answered. Of all requests whose answer may be lost, or after
which the process may die, the one counts that does most harm. A process that died sends nothing any more.
"""

import json
import statistics
import time
from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple
from uuid import uuid4

import boto3
from botocore.config import Config
from botocore.exceptions import ReadTimeoutError

REGION, LIMIT = "eu-west-1", 10**9
OPS, EACH = 40, 20
TRIES, WAIT_S, LEFT_MS = 8, 0.3, 200  # who is not answered waits until an invocation of LEFT_MS is surely over
PACK = 38


class Way(NamedTuple):
    """add(counter, key): makes `changes` changes. value(counter): their sum."""

    add: Callable[[str, str], object]
    value: Callable[[str], int]
    changes: int = 1


class Died(BaseException):
    """The process is no more."""


class Wire:
    """What goes over the wire of the clients that it watches. lose, die: the number of the answer that is lost, or
    after which the process dies. table: with keys pk and sk; ids: with a key id."""

    def __init__(self, url: str, table: str, ids: str) -> None:
        self.url, self.table, self.ids, self.sent = url, table, ids, 0
        self.units = {"write": 0.0, "read": 0.0}
        self.lose = self.die = -1

    def client(self, config: Config | None = None) -> Any:
        return self.watch(boto3.client("dynamodb", region_name=REGION, endpoint_url=self.url, config=config))

    def watch(self, client: Any) -> Any:
        events, session = client.meta.events, client._endpoint.http_session
        events.register("before-parameter-build.dynamodb", lambda params, **_: params.update(_WITH_UNITS))
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
            each["CapacityUnits"] for each in (reported if isinstance(reported, list) else [reported])
        )


_WITH_UNITS = {"ReturnConsumedCapacity": "TOTAL"}


def plain(wire: Wire, client: Any = None) -> Way:
    client = client or wire.client()

    def of(counter: str) -> dict[str, Any]:
        return {"TableName": wire.table, "Key": {"pk": {"S": counter}, "sk": {"S": "count"}}}

    one = {"UpdateExpression": "ADD amount :one", "ExpressionAttributeValues": {":one": {"N": "1"}}}
    return Way(
        lambda counter, _: client.update_item(**of(counter), **one),
        lambda counter: int(client.get_item(**of(counter), ConsistentRead=True)["Item"]["amount"]["N"]),
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

    once: Any = idempotent_function(handle, data_keyword_argument="event", persistence_store=layer, config=config)
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
    return Way(lambda counter, _: Row(counter, "count").update(actions=[Row.amount.add(1)]), plain(wire).value)


def zae_limiter(wire: Wire) -> Way:
    from zae_limiter import Limit, SyncRateLimiter, SyncRepository

    repository = SyncRepository(f"{wire.table}-zae", REGION, wire.url, _skip_deprecation_warning=True)
    repository.create_table()
    wire.watch(repository._get_client())
    limiter, limits = SyncRateLimiter(repository=repository), [Limit.per_day("n", LIMIT)]

    def add(counter: str, _: str) -> None:
        with limiter.acquire(entity_id=counter, resource="r", limits=limits, consume={"n": 1}):
            """The lease is kept."""

    return Way(add, lambda counter: repository.get_buckets(counter, "r")[0].total_consumed_milli // 1_000)


def ours(wire: Wire, changes: int = 1, prefix: str = "") -> Way:
    from datetime import UTC, datetime

    from ledger import Change, Ledger, Limit, Settings
    from ledger.dynamo.client import CONFIG
    from reader import Reader

    at = datetime.now(UTC)
    settings = Settings(table=wire.table, region=REGION, limits={"seats:": Limit(ceiling=LIMIT, region=REGION)})
    client = wire.client(CONFIG)
    ledger, reader = Ledger(settings, client=client), Reader(settings, client=client)

    def add_pack(counter: str, key: str) -> None:
        named = [Change(counter, 1, f"{key}/{number}", at) for number in range(changes)]
        for outcome in ledger.add_many(named, pack=True):
            if isinstance(outcome, Exception):
                raise outcome

    add = lambda counter, key: ledger.add(f"{prefix}{counter}", 1, idempotency_key=key, at=at)  # noqa: E731
    return Way(add if changes == 1 else add_pack, lambda counter: reader.value(f"{prefix}{counter}"), changes)


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
"""Packages of requirements-rivals.lock, which are not in our environment."""


def main(name: str, url: str, table: str, ids: str, rounds: int) -> None:
    """Prints what was found of a way, as JSON."""
    wire = Wire(url, table, ids)
    way = WAYS[name](wire)
    print(json.dumps(_taken(wire, way) | {"cpu": _cpu(wire, way, rounds)} | _harm(wire, way)))


def _taken(wire: Wire, way: Way) -> dict[str, float]:
    """Requests and units of a change of a counter that there is."""
    before = {}
    for number in range(2 * OPS):
        if number == OPS:
            before = {"requests": wire.sent, **wire.units}
        way.add("busy", f"busy-{number}")
        time.sleep(0.003)  # so that time goes on, as it does for whom changes come one by one
    return {
        kind: (now - before[kind]) / OPS / way.changes for kind, now in {"requests": wire.sent, **wire.units}.items()
    }


def _cpu(wire: Wire, way: Way, rounds: int) -> float:
    """The CPU of a change over that of a bare put_item, in turns."""
    bare, numbers, ratios = boto3.client("dynamodb", region_name=REGION, endpoint_url=wire.url), count(), []
    for _ in range(rounds + 1):
        taken = []
        for call, changes in ((way.add, way.changes), (lambda *_: _put(bare, wire.table), 1)):
            began = time.process_time()
            for _ in range(EACH):
                call("cpu", f"cpu-{next(numbers)}")
            taken.append((time.process_time() - began) / changes)
        ratios.append(taken[0] / taken[1])
    return statistics.median(ratios[1:])


def _put(client: Any, table: str) -> None:
    condition = {"ConditionExpression": "attribute_not_exists(pk)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    client.put_item(TableName=table, Item={"pk": {"S": "put"}, "sk": {"S": f"{uuid4()}"}, "n": {"N": "1"}}, **condition)


def _harm(wire: Wire, way: Way) -> dict[str, float]:
    """How often one change counts."""
    found = {"again": [_counted(wire, way, "again", twice=True)]}
    requests = _requests(wire, way)
    for fault in ("lose", "die"):
        found[fault] = [_counted(wire, way, f"{fault}-{number}", fault, number) for number in range(requests)]
    return {fault: max(counted, key=lambda times: abs(times - 1)) for fault, counted in found.items()}


def _requests(wire: Wire, way: Way) -> int:
    way.add("sent", "first")
    before = wire.sent
    way.add("sent", "second")
    return wire.sent - before


def _counted(wire: Wire, way: Way, counter: str, fault: str = "", number: int = 0, *, twice: bool = False) -> float:
    """Of the second change of a new counter."""
    way.add(counter, f"{counter}-first")
    wire.sent, key = 0, f"{counter}-second"
    if fault:
        setattr(wire, fault, number)
    for _ in range(TRIES):
        try:
            way.add(counter, key)
            break
        except (Died, Exception):
            time.sleep(WAIT_S)
        finally:
            wire.lose = wire.die = -1
    else:
        raise AssertionError(f"{counter} was never answered")
    if twice:
        way.add(counter, key)
    return way.value(counter) / way.changes - 1
