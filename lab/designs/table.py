"""DynamoDB for the approaches: `ledger.table` and, on top of it, their updates, deletes and transactions.

Rules: arguments come from `writes.py`, failures from `ledger.failures`; a conflict or throttling is tried again
a bounded number of times, as there, with the same token; whether the SDK sends again what got no answer is a matter of
the client (`config`), because approaches differ in it; what was sent is counted below the SDK, once for each attempt.
"""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import ClientError

from lab.designs.writes import Answer, Ask, DeleteItem, ItemTooLarge, Pause, PutItem, Transaction, UpdateItem, Write
from ledger import failures
from ledger.client import CONFIG
from ledger.errors import LedgerError, TokenConflict
from ledger.table import DynamoTable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

SHOW: Mapping[str, Any] = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def config(attempts: int) -> Config:
    """The ledger's settings of a client, with so many HTTP attempts for a call; with 1 the SDK sends nothing twice."""
    return CONFIG.merge(Config(retries={"mode": "standard", "total_max_attempts": attempts}))


class ApproachTable(DynamoTable):
    """Answers what `writes.py` and `ledger.requests` describe. `others`: the approach's names for more tables."""

    def __init__(
        self, name: str, region: str, client: DynamoDBClient, *, others: Mapping[str, str] | None = None, **given: Any
    ) -> None:
        super().__init__(name, region, lambda _: client, **given)
        self._tables = {"": name, **(others or {})}

    def answer(self, request: Ask, /) -> Any:
        match request:
            case UpdateItem() | PutItem() | DeleteItem():
                return self._single(request)
            case Transaction():
                return self._transaction(request)
            case Pause():
                return self._wait(request.doublings)
            case _:
                return super().answer(request)

    def _single(self, write: Write) -> Answer:
        try:
            self._asked(f"{write.kind.lower()}_item", self._spelled(write))
        except failures.ConditionFailed as failed:
            return failed.item
        return None

    def _transaction(self, transaction: Transaction) -> tuple[Answer, ...] | None:
        actions = [{write.kind: self._spelled(write)} for write in transaction.writes]
        arguments: dict[str, Any] = {"TransactItems": actions}
        if transaction.token is not None:  # one is known in all tables of an account, and has 36 characters
            named = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.name}\0{transaction.token}")
            arguments["ClientRequestToken"] = str(named)
        try:
            self._asked("transact_write_items", arguments)
        except failures.ConditionFailed as failed:
            reasons = _response(failed)["CancellationReasons"]
            return tuple(r.get("Item", {}) if r["Code"] == "ConditionalCheckFailed" else None for r in reasons)
        return None

    def _spelled(self, write: Write) -> dict[str, Any]:
        return {"TableName": self._tables[write.table], **write.arguments(), **SHOW}

    def _asked(self, operation: str, arguments: dict[str, Any]) -> None:
        try:
            self._write(operation, arguments, table=False)
        except LedgerError as error:
            if "IdempotentParameterMismatch" in str(error):
                raise TokenConflict(str(error)) from error
            if "Item size" in str(_response(error)):
                raise ItemTooLarge(str(error)) from error
            raise


def _response(error: Exception) -> Any:
    return error.__cause__.response if isinstance(error.__cause__, ClientError) else {}


class Traffic:
    """What a client sent: `calls`, the HTTP `attempts` they took, and how many of those met a `conflict` and so on."""

    def __init__(self, client: DynamoDBClient) -> None:
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        client.meta.events.register("before-parameter-build.dynamodb", self._called)
        client.meta.events.register("response-received.dynamodb", self._attempted)

    @property
    def retries(self) -> int:
        """What the SDK sent again by itself."""
        return self.counts["attempts"] - self.counts["calls"]

    def _called(self, **_: Any) -> None:
        with self._lock:
            self.counts["calls"] += 1

    def _attempted(self, parsed_response: Any = None, **_: Any) -> None:
        code = ""
        if parsed_response and "Error" in parsed_response:
            code = failures.code_of(ClientError(parsed_response, ""))
        with self._lock:
            self.counts["attempts"] += 1
            self.counts["conflicts"] += code in failures.CONFLICT
            self.counts["throttled"] += code in failures.THROTTLING
            self.counts["refused"] += code == "ConditionalCheckFailed"
