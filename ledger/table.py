"""DynamoDB itself: the only file that calls boto3's operations.

Rules: one arm a request; every page, every unprocessed key and item is seen to; a conflict or throttling is tried again
a bounded number of times, with jitter and the same ClientRequestToken, because the SDK never does that for a cancelled
transaction; a failure becomes one of ours in `failures.py` and nowhere else.
Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from ledger import errors, failures
from ledger.client import POOL, make_client
from ledger.errors import InvalidInput, LedgerError, shown
from ledger.forks import PerProcess
from ledger.requests import (
    Absent,
    AlreadyThere,
    DeleteMany,
    Get,
    GetMany,
    Item,
    Key,
    KeyPage,
    Page,
    Pause,
    Put,
    PutMany,
    Query,
    Request,
    Scan,
    Table,
    Together,
    Transact,
    VersionIs,
)
from ledger.settings import Settings

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

TRIES_MAX = 6
"""How often a request is sent that meets conflicts or throttling, the SDK's own retries aside."""

PAUSE_BASE_S = 0.05
GET_KEYS_MAX, STATEMENTS_MAX = 100, 25

Statement = Callable[[str, Item], dict[str, Any]]
"""A PartiQL statement for (table, item)."""


class DynamoTable:
    """Answers requests from a DynamoDB table in `region`, and a `Get` that names another Region from there.

    clients(region) gives the boto3 client of a Region; pause(seconds) and jitter() -> [0, 1) may be given by tests.
    """

    def __init__(
        self,
        name: str,
        region: str,
        clients: Callable[[str], DynamoDBClient],
        *,
        pause: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self.region = region
        self._clients = clients
        self._pause = pause
        self._jitter = jitter
        self._threads = PerProcess(lambda: ThreadPoolExecutor(POOL, thread_name_prefix="ledger-table"))

    @classmethod
    def of(
        cls, settings: Settings, clients: Mapping[str, DynamoDBClient] | None = None, region: str | None = None
    ) -> DynamoTable:
        """The table of `settings`, seen from `region` (default: its own), with clients made where none is given."""
        given = {region: failures.note_attempts(client) for region, client in (clients or {}).items()}
        return cls(
            settings.table,
            region or settings.region,
            lambda region: given[region] if region in given else make_client(region, settings.endpoint_url),
        )

    def answer(self, request: Request, /) -> Any:
        """The answer to a request, as `requests.py` describes it. Raises TypeError for anything else."""
        match request:
            case Put():
                return self._put(request)
            case PutMany(items):
                return self._each(items, _insert, lambda item: self._put(Put(item, Absent())))
            case DeleteMany(items):
                return self._each(items, _delete, self._delete)
            case Pause(ms):
                self._pause(ms / 1_000)
                return None
            case Get(key, consistent, region):
                answer = self._read("get_item", {"Key": _key(key), "ConsistentRead": consistent}, region=region)
                return answer.get("Item")
            case GetMany(keys, consistent):
                chunks = _chunks(keys, GET_KEYS_MAX)
                return tuple(self._at_once(lambda chunk: self._get_batch(chunk, consistent), chunks))
            case Query():
                return self._query(request)
            case Transact(puts):
                return self._transact(puts)
            case Scan(after):
                start = {"ExclusiveStartKey": _key(after)} if after else {}
                answer = self._read("scan", {"ProjectionExpression": "pk, sk", **start})
                last = answer.get("LastEvaluatedKey")
                return KeyPage(tuple(_key_of(item) for item in answer["Items"]), _key_of(last) if last else None)
            case Together(requests):
                return tuple(self._at_once(lambda each: [self._or_error(each)], requests))
            case _:
                raise TypeError(f"not a request that a table answers: {request!r}")

    def _put(self, put: Put) -> Item | None:
        """What was there when the condition failed; None when the item was written."""
        return self._unless("put_item", {"Item": put.item, **_condition(put.condition)})

    def _delete(self, item: Item) -> Item | None:
        """What is there with other attributes; None when the item was deleted, or nothing was there."""
        return self._unless("delete_item", {"Key": _key(_key_of(item)), **_unchanged(item)}) or None

    def _unless(self, operation: str, arguments: dict[str, Any]) -> Item | None:
        try:
            self._write(operation, {**arguments, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"})
        except failures.ConditionFailed as failed:
            return failed.item
        return None

    def _each(
        self, items: Sequence[Item], statement: Statement, single: Callable[[Item], Item | None]
    ) -> tuple[AlreadyThere | LedgerError | None, ...]:
        """Conditional writes, each on its own: as statements, many a request; what PartiQL is refused goes alone."""
        answers = self._at_once(lambda chunk: self._batch(chunk, statement), _chunks(items, STATEMENTS_MAX))
        refused = [i for i, answer in enumerate(answers) if isinstance(answer, errors.NotAllowed)]
        singles = self._at_once(lambda i: [_outcome(single, items[i])], refused)
        for i, answer in zip(refused, singles, strict=True):
            answers[i] = answer
        return tuple(answers)

    def _batch(self, items: Sequence[Item], statement: Statement) -> list[AlreadyThere | LedgerError | None]:
        """Conditional writes in one request; those that met a conflict or throttling again, a few times."""
        answers: dict[int, AlreadyThere | LedgerError | None] = {}
        todo = list(range(len(items)))
        for attempt in range(TRIES_MAX):
            answers |= zip(todo, self._execute([statement(self.name, items[i]) for i in todo]), strict=True)
            todo = [i for i in todo if isinstance(answers[i], errors.Throttled | errors.TransactionConflict)]
            if not todo:
                break
            self._wait(attempt)
        return [answers[i] for i in range(len(items))]

    def _execute(self, statements: Sequence[dict[str, Any]]) -> list[AlreadyThere | LedgerError | None]:
        try:
            answer = self._send("batch_execute_statement", {"Statements": statements}, writes=True)
        except (
            TypeError,
            AssertionError,
        ):  # moto 5.2 cannot read a PartiQL parameter: to it, as to a narrow role, single writes remain
            return [
                errors.NotAllowed("This engine knows no PartiQL parameters. Nothing was written.") for _ in statements
            ]
        except LedgerError as error:
            return [type(error)(*error.args) for _ in statements]
        unanswered = [{"Error": {"Code": "no response"}}] * (len(statements) - len(answer["Responses"]))
        resent = answer.get("ResponseMetadata", {}).get("RetryAttempts", 0) > 0
        return [_statement_answer(each.get("Error"), resent) for each in (*answer["Responses"], *unanswered)]

    def _get_batch(self, keys: Sequence[Key], consistent: bool) -> list[Item | None]:
        found: dict[Key, Item] = {}
        todo: Any = {self.name: {"Keys": [_key(key) for key in keys], "ConsistentRead": consistent}}
        for attempt in range(TRIES_MAX):
            answer = self._read("batch_get_item", {"RequestItems": todo}, table=False)
            found |= {_key_of(item): item for item in answer["Responses"].get(self.name, [])}
            todo = answer.get("UnprocessedKeys")
            if not todo:
                return [found.get(key) for key in keys]
            self._wait(attempt)
        raise errors.Throttled(f"BatchGetItem left keys unprocessed {TRIES_MAX} times. Nothing was written.")

    def _query(self, query: Query) -> Page:
        condition, values = "pk = :pk", {":pk": {"S": query.pk}}
        low, high = query.after, query.upto
        if low is not None and high is not None:
            if low >= high:
                return Page((), None)
            # BETWEEN includes its ends; the text that follows `low` at once is `low` and a NUL.
            condition, values = condition + " AND sk BETWEEN :low AND :high", values | _bounds(low + "\0", high)
        elif low is not None:
            condition, values = condition + " AND sk > :low", values | _bounds(low, None)
        elif high is not None:
            condition, values = condition + " AND sk <= :high", values | _bounds(None, high)
        arguments = {
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ConsistentRead": query.consistent,
            **({"Limit": query.limit} if query.limit else {}),
        }
        answer = self._read("query", arguments)
        last = answer.get("LastEvaluatedKey")
        return Page(tuple(answer["Items"]), last["sk"]["S"] if last else None)

    def _transact(self, puts: Sequence[Put]) -> bool:
        actions = [{"Put": {"TableName": self.name, "Item": put.item, **_condition(put.condition)}} for put in puts]
        try:
            self._write(
                "transact_write_items",
                {"TransactItems": actions, "ClientRequestToken": str(uuid.uuid4())},
                table=False,
            )
        except failures.ConditionFailed:
            return False
        return True

    # -- sending -------------------------------------------------------------------------------------------------------

    def _read(self, operation: str, arguments: dict[str, Any], *, region: str | None = None, table: bool = True) -> Any:
        return self._persist(operation, arguments, region=region, writes=False, table=table)

    def _write(self, operation: str, arguments: dict[str, Any], *, table: bool = True) -> Any:
        return self._persist(operation, arguments, region=None, writes=True, table=table)

    def _persist(
        self, operation: str, arguments: dict[str, Any], *, region: str | None, writes: bool, table: bool
    ) -> Any:
        """Send; again, with the same arguments, while the failure is one that passes."""
        if table:
            arguments = {"TableName": self.name, **arguments}
        unknown: errors.OutcomeUnknown | None = None
        for attempt in range(TRIES_MAX):
            try:
                return self._send(operation, arguments, writes=writes, region=region)
            except LedgerError as error:
                if isinstance(error, errors.OutcomeUnknown):
                    unknown = error
                if attempt == TRIES_MAX - 1 or not failures.passes(error.__cause__):
                    raise unknown or error from error.__cause__  # what an earlier attempt may have done stays unknown
            self._wait(attempt)
        raise AssertionError("unreachable")

    def _send(self, operation: str, arguments: dict[str, Any], *, writes: bool, region: str | None = None) -> Any:
        try:
            client = self._clients(region or self.region)
        except BotoCoreError as failure:  # such as a profile that does not exist
            raise errors.NotAllowed(f"There is no client: {failure}. Nothing was written.") from failure
        try:
            send = getattr(client, operation)
        except AttributeError:
            raise InvalidInput(f"{shown(client)} is no DynamoDB client of boto3: it has no {operation}.") from None
        try:
            return send(**arguments)
        except (ClientError, BotoCoreError) as failure:
            raise failures.error_of(failure, operation, writes, self.name) from failure

    def _wait(self, attempt: int) -> None:
        self._pause(PAUSE_BASE_S * 2**attempt * self._jitter())

    def _or_error(self, request: Request) -> Any:
        try:
            return self.answer(request)
        except LedgerError as error:
            return error

    def _at_once(self, call: Callable[[Any], Sequence[Any]], parts: Sequence[Any]) -> list[Any]:
        """The answers to all parts in order, asked for in parallel when there is more than one."""
        if len(parts) < 2:
            return [answer for part in parts for answer in call(part)]
        return [answer for answers in self._threads.value.map(call, parts) for answer in answers]


def table_of(settings: Settings, table: Table | None, client: DynamoDBClient | None) -> Table:
    """The given table, else DynamoDB's, asked through the given client. Raises InvalidInput."""
    if table is None:
        return DynamoTable.of(settings, None if client is None else {settings.region: client})
    return check_table(table)


def check_table(table: Table) -> Table:
    """`table` itself; raises InvalidInput for what answers no requests."""
    if not callable(getattr(table, "answer", None)):
        given: object = table
        hint = " The name of a table goes into Settings(table=...)." if isinstance(given, str) else ""
        raise InvalidInput(f"A table answers requests, as a MemoryTable does; {shown(table)} has no answer().{hint}")
    return table


def _outcome(write: Callable[[Item], Item | None], item: Item) -> AlreadyThere | LedgerError | None:
    try:
        there = write(item)
    except LedgerError as error:
        return error
    return None if there is None else AlreadyThere(there or None)


def _statement_answer(error: Any, resent: bool) -> AlreadyThere | LedgerError | None:
    """What a response to one statement says. One refused after the batch was `resent` may have been applied before."""
    if not error:
        return None
    code, message = error.get("Code", ""), error.get("Message", "")
    if code in ("DuplicateItem", "ConditionalCheckFailed"):
        return AlreadyThere(error.get("Item"))
    refusal = None if resent else failures.known(code, f"PartiQL: {message}")
    return refusal or failures.no_answer("PartiQL", True, f"{code}: {message}")


def _insert(table: str, item: Item) -> dict[str, Any]:
    """A PartiQL INSERT, which fails when the key exists: a conditional put."""
    attributes = ", ".join(f"'{name}': ?" for name in item)
    return _parametrised(f'INSERT INTO "{table}" VALUE {{{attributes}}}', item)


def _delete(table: str, item: Item) -> dict[str, Any]:
    """A PartiQL DELETE, which fails when the key has other attributes, and does nothing when there is no such key.

    Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.delete.html
    """
    attributes = " AND ".join(f'"{name}" = ?' for name in item)
    return _parametrised(f'DELETE FROM "{table}" WHERE {attributes}', item)


def _parametrised(text: str, item: Item) -> dict[str, Any]:
    parameters = list(item.values())
    return {"Statement": text, "Parameters": parameters, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def _unchanged(item: Item) -> dict[str, Any]:
    """The condition that what stands in the table has these attributes; it fails, too, when nothing does."""
    others = [(f"a{n}", name, value) for n, (name, value) in enumerate(item.items()) if name not in ("pk", "sk")]
    named = {
        "ExpressionAttributeNames": {f"#{a}": name for a, name, _ in others},
        "ExpressionAttributeValues": {f":{a}": value for a, _, value in others},
    }
    equal = [f"#{a} = :{a}" for a, _, _ in others]
    return {"ConditionExpression": " AND ".join(["attribute_exists(pk)", *equal]), **(named if others else {})}


def _condition(condition: Absent | VersionIs | None) -> dict[str, Any]:
    match condition:
        case Absent():
            return {"ConditionExpression": "attribute_not_exists(pk)"}
        case VersionIs(version):
            return {
                "ConditionExpression": "version = :version",
                "ExpressionAttributeValues": {":version": {"N": str(version)}},
            }
        case None:
            return {}


def _bounds(low: str | None, high: str | None) -> dict[str, dict[str, str]]:
    return {name: {"S": text} for name, text in ((":low", low), (":high", high)) if text is not None}


def _key(key: Key) -> dict[str, dict[str, str]]:
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}}


def _key_of(item: Any) -> Key:
    if "S" not in item.get("pk", {}) or "S" not in item.get("sk", {}):
        raise errors.TableMismatch(f"An item has the keys {sorted(item)}. The table needs the string keys pk and sk.")
    return Key(item["pk"]["S"], item["sk"]["S"])


def _chunks(parts: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [parts[i : i + size] for i in range(0, len(parts), size)]
