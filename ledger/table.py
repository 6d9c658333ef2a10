"""DynamoDB itself: the only file that calls boto3's operations.

Rule 1: what is asked, and what an answer means, is in `wire.py`; a failure becomes one of ours in `failures.py`.
Rule 2: every page, every unprocessed key and item is seen to.
Rule 3: a conflict or throttling is tried again a bounded number of times, with jitter and the same ClientRequestToken,
because the SDK never does that for a cancelled transaction.
Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from ledger import errors, failures, wire
from ledger.client import POOL, make_client
from ledger.conditions import Absent, has
from ledger.errors import InvalidInput, LedgerError, shown
from ledger.forks import PerProcess
from ledger.requests import (
    AlreadyThere,
    At,
    Delete,
    DeleteMany,
    Get,
    GetMany,
    Item,
    Key,
    Page,
    Pause,
    Put,
    PutMany,
    Query,
    Request,
    Scan,
    Together,
    Transact,
    Update,
    Write,
    Written,
    key_of,
)
from ledger.settings import Settings
from ledger.wire import Operation

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

TRIES_MAX = 6
"""How often a request is sent that meets conflicts or throttling, the SDK's own retries aside."""

PAUSE_BASE_S = 0.05


class DynamoTable:
    """Answers requests from a DynamoDB table in `region`, and those At another Region from there.

    insert_only: deltas and packs are put by PartiQL INSERT. clients(region) gives the boto3 client of a Region;
    pause(seconds) and jitter() -> [0, 1) may be given by tests.
    """

    def __init__(
        self,
        name: str,
        region: str,
        clients: Callable[[str], DynamoDBClient],
        *,
        insert_only: bool = False,
        pause: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self.region = region
        self._insert_only = insert_only
        self._clients = clients
        self._pause = pause
        self._jitter = jitter
        self._elsewhere: dict[str, DynamoTable] = {}
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
            insert_only=settings.insert_only,
        )

    def answer(self, request: Request, /) -> Any:
        """The answer to a request, as `requests.py` describes it. Raises TypeError for anything else."""
        match request:
            case Put() if self._insert_only and wire.is_insert(request):
                return self._insert(request)
            case Put() | Update() | Delete():
                return self._write(request)
            case Transact():
                return self._transact(request)
            case PutMany(items):
                return self._each(items, wire.insert, lambda item: self.answer(Put(item, Absent())))
            case DeleteMany(items):
                return self._each(items, wire.delete, lambda item: self._write(Delete(key_of(item), has(item))) or None)
            case Query() if wire.is_empty(request):
                return Page((), None)
            case Get() | Query() | Scan():
                return wire.answer(request, self._persist(wire.operation(request, self.name), False))
            case GetMany(keys, consistent):
                chunks = _chunks(keys, wire.GET_KEYS_MAX)
                return tuple(self._at_once(lambda chunk: self._get_batch(chunk, consistent), chunks))
            case Together(requests):
                return tuple(self._at_once(lambda each: [self._or_error(each)], requests))
            case At(region, inner):
                return self._at(region).answer(inner)
            case Pause(ms):
                self._pause(ms / 1_000)
                return None
            case _:
                raise TypeError(f"not a request that a table answers: {request!r}")

    def _at(self, region: str) -> DynamoTable:
        """The same table, seen from another Region."""
        if region not in self._elsewhere:
            given: Any = {"insert_only": self._insert_only, "pause": self._pause, "jitter": self._jitter}
            there = DynamoTable(self.name, region, self._clients, **given)
            return self._elsewhere.setdefault(region, there)
        return self._elsewhere[region]

    def _write(self, write: Write) -> Any:
        """None when written, or Written where that is asked for; else what was there when the condition failed."""
        try:
            response = self._persist(wire.operation(write, self.name), True)
        except failures.ConditionFailed as failed:
            return failed.there[0] or {}
        return Written(response["Attributes"]) if isinstance(write, Update) and write.shows else None

    def _insert(self, put: Put) -> Item | AlreadyThere | None:
        """A put of a delta or a pack as a statement that can replace nothing; an INSERT does not tell what is there."""
        for _ in range(TRIES_MAX):
            try:
                self._persist(Operation("execute_statement", wire.insert(self.name, put.item)), True)
                return None
            except LedgerError as error:
                if not failures.is_there(error.__cause__):
                    raise
            if put.condition is None:
                return None  # a pack: what stands under its name is the same
            try:
                there: Item | None = self.answer(Get(put.key))
            except errors.NotAllowed as refused:
                if not failures.denied(refused.__cause__):
                    raise
                return AlreadyThere(None)
            if there is not None:
                return there  # else it was cleaned meanwhile, and is put again, as by any retry that comes so late
        raise errors.TransactionConflict(
            f"{put.key} came and went, {TRIES_MAX} times. Nothing was written. Call again."
        )

    def _transact(self, transaction: Transact) -> tuple[Item | None, ...] | None:
        """None when written; else for each write what was there when its condition failed."""
        try:
            self._persist(wire.operation(transaction, self.name), True)
        except failures.ConditionFailed as failed:
            return failed.there
        return None

    def _each(
        self, items: Sequence[Item], statement: wire.Statement, single: Callable[[Item], Any]
    ) -> tuple[AlreadyThere | LedgerError | None, ...]:
        """Conditional writes, each on its own: as statements, many a request; what PartiQL is refused goes alone."""
        answers = self._at_once(lambda chunk: self._batch(chunk, statement), _chunks(items, wire.STATEMENTS_MAX))
        refused = [i for i, answer in enumerate(answers) if isinstance(answer, errors.NotAllowed)]
        singles = self._at_once(lambda i: [_outcome(single, items[i])], refused)
        for i, answer in zip(refused, singles, strict=True):
            answers[i] = answer
        return tuple(answers)

    def _batch(self, items: Sequence[Item], statement: wire.Statement) -> list[AlreadyThere | LedgerError | None]:
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
            answer = self._send(Operation("batch_execute_statement", {"Statements": statements}), True)
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
        todo: Any = wire.batch_get(keys, consistent, self.name)
        for attempt in range(TRIES_MAX):
            answer = self._persist(Operation("batch_get_item", {"RequestItems": todo}), False)
            found |= {wire.key_of(item): item for item in answer["Responses"].get(self.name, [])}
            todo = answer.get("UnprocessedKeys")
            if not todo:
                return [found.get(key) for key in keys]
            self._wait(attempt)
        raise errors.Throttled(f"BatchGetItem left keys unprocessed {TRIES_MAX} times. Nothing was written.")

    # -- sending -------------------------------------------------------------------------------------------------------

    def _persist(self, operation: Operation, writes: bool) -> Any:
        """Send; again, with the same arguments, while the failure is one that passes."""
        unknown: errors.OutcomeUnknown | None = None
        for attempt in range(TRIES_MAX):
            try:
                return self._send(operation, writes)
            except LedgerError as error:
                if isinstance(error, errors.OutcomeUnknown):
                    unknown = error
                if attempt == TRIES_MAX - 1 or not failures.passes(error.__cause__):
                    raise unknown or error from error.__cause__  # what an earlier attempt may have done stays unknown
            self._wait(attempt)
        raise AssertionError("unreachable")

    def _send(self, operation: Operation, writes: bool) -> Any:
        try:
            client = self._clients(self.region)
        except BotoCoreError as failure:  # such as a profile that does not exist
            raise errors.NotAllowed(f"There is no client: {failure}. Nothing was written.") from failure
        try:
            send = getattr(client, operation.name)
        except AttributeError:
            raise InvalidInput(f"{shown(client)} is no DynamoDB client of boto3: it has no {operation.name}.") from None
        try:
            return send(**operation.arguments)
        except (ClientError, BotoCoreError) as failure:
            raise failures.error_of(failure, operation.name, writes, self.name) from failure

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


def _outcome(write: Callable[[Item], Any], item: Item) -> AlreadyThere | LedgerError | None:
    try:
        there = write(item)
    except LedgerError as error:
        return error
    return there if there is None or isinstance(there, AlreadyThere) else AlreadyThere(there or None)


def _statement_answer(error: Any, resent: bool) -> AlreadyThere | LedgerError | None:
    """What a response to one statement says. One refused after the batch was `resent` may have been applied before."""
    if not error:
        return None
    code, message = error.get("Code", ""), error.get("Message", "")
    if code in failures.DUPLICATE or code == "ConditionalCheckFailed":
        return AlreadyThere(error.get("Item"))
    refusal = None if resent else failures.known(code, f"PartiQL: {message}")
    return refusal or failures.no_answer("PartiQL", True, f"{code}: {message}")


def _chunks(parts: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [parts[i : i + size] for i in range(0, len(parts), size)]
