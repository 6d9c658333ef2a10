"""The steps from a request to its answer by operations of DynamoDB: `DynamoTable` and
`AsyncDynamoTable` do them.

Rule 1: `ask.py` has the operations and the meaning of their answers; `send.py` sends, and sends
again.
Rule 2: it goes on until no page and no unprocessed key or item is left.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ledger.core import errors, requests
from ledger.core.conditions import Absent, has
from ledger.core.cost import here
from ledger.core.errors import LedgerError
from ledger.core.requests import (
    AlreadyThere,
    Doubt,
    Get,
    Item,
    Key,
    Put,
    Request,
    Resent,
    Transact,
    Update,
    Written,
    key_of,
    keyed,
)
from ledger.tables import ask, failures
from ledger.tables.ask import Operation
from ledger.tables.send import TRIES_MAX, Endpoint, Steps, Wait, all_of, flat


class Exchange(Endpoint):
    """The steps to a table's answers, as seen from a Region."""

    def metered(self) -> "Exchange":
        """The same, with the meter of the current call."""
        return Exchange(self.name, self.region, self.jitter, self.insert_only, here())

    def answer(self, request: Request) -> Steps[Any]:
        """The answer to a request, as `requests.py` describes it.

        Raises TypeError for anything else.
        """
        match request:
            case Put() if self.insert_only and ask.is_insert(request):
                return (yield from self._insert(request))
            case Put() | Update() | requests.Delete() | Transact():
                return (yield from self._write(request))
            case requests.PutMany(items):
                return (
                    yield from self._each(
                        items, ask.insert, lambda item: self.answer(Put(item, Absent()))
                    )
                )
            case requests.DeleteMany(items):
                return (yield from self._each(items, ask.delete, self._delete))
            case requests.Query(_, str(after), str(upto)) if after >= upto:
                # DynamoDB refuses a range that no sort key can lie in
                return requests.Page((), None)
            case Get() | requests.Query() | requests.Scan():
                return ask.answer(
                    request, (yield from self.persist(ask.operation(request, self.name), False))
                )
            case requests.GetMany(keys, consistent):
                chunks = _chunks(keys, ask.GET_KEYS_MAX)
                return tuple(
                    (yield from flat([self._get_batch(chunk, consistent) for chunk in chunks]))
                )
            case requests.Together(parts):
                return tuple((yield from all_of([self.answer(part) for part in parts])))
            case requests.At(region, inner):
                return (yield from replace(self, region=region).answer(inner))
            case requests.Pause(ms):
                return (yield Wait(ms / 1_000))
            case _:
                raise TypeError(f"not a request that a table answers: {request!r}")

    def _write(self, request: requests.Write | Transact) -> Steps[Any]:
        try:
            response = yield from self.persist(ask.operation(request, self.name), True)
        except failures.ConditionFailed as failed:
            if isinstance(request, Transact):
                return failed.there
            there = failed.there[0] or {}  # what a Put meets shows whether it is its own
            return Resent(there) if failed.resent and isinstance(request, Update) else there
        return (
            Written(response["Attributes"])
            if isinstance(request, Update) and request.shows
            else None
        )

    def _delete(self, item: Item) -> Steps[Item | None]:
        """Delete an item. None when it is gone; else the other item that is in its place."""
        return (yield from self._write(requests.Delete(key_of(item), has(item)))) or None

    def _insert(self, put: Put) -> Steps[Item | AlreadyThere | None]:
        """Put a delta or a pack by an INSERT, which can replace nothing and does not show what is
        there. What is there may be of an earlier attempt, so no later request's error says that
        nothing was written."""
        with Doubt() as doubt:
            for _ in range(TRIES_MAX):
                try:
                    yield from self.persist(
                        Operation("execute_statement", ask.insert(self.name, put.item)), True
                    )
                    return None
                except LedgerError as error:
                    if failures.code_of(error.__cause__) not in failures.DUPLICATE:
                        raise
                    doubt.note(error)
                if put.condition is None:
                    return None  # a pack: the item under its name is the same
                try:
                    there: Item | None = yield from self.answer(Get(put.key))
                except errors.NotAllowed as refused:
                    if not refused.is_denied:
                        raise
                    return AlreadyThere(None, resent=True)
                if there is not None:
                    # else it was cleaned meanwhile, and is put again, as by any retry that comes so
                    # late
                    return there
            raise errors.TransactionConflict(
                f"{put.key} came and went {TRIES_MAX} times. Call again."
            )

    def _each(
        self, items: Sequence[Item], statement: ask.Statement, single: Callable[[Item], Steps[Any]]
    ) -> Steps[tuple[AlreadyThere | LedgerError | None, ...]]:
        """Conditional writes, each on its own: as statements, many a request; alone where
        PartiQL is not allowed.
        """
        chunks = _chunks(items, ask.STATEMENTS_MAX)
        answers = yield from flat([self._batch(chunk, statement) for chunk in chunks])
        refused = [i for i, answer in enumerate(answers) if isinstance(answer, errors.NotAllowed)]
        singles = yield from all_of([single(items[i]) for i in refused])
        for i, answer in zip(refused, singles, strict=True):
            answers[i] = requests.outcome(answer)
        return tuple(answers)

    def _batch(
        self, items: Sequence[Item], statement: ask.Statement
    ) -> Steps[list[AlreadyThere | LedgerError | None]]:
        """Conditional writes in one request; those that met a conflict or throttling are sent
        again, TRIES_MAX at most."""
        answers: dict[int, AlreadyThere | LedgerError | None] = {}
        todo = list(range(len(items)))
        for attempt in range(TRIES_MAX):
            found = yield from self._execute([statement(self.name, items[i]) for i in todo])
            answers |= zip(todo, found, strict=True)
            todo = [
                i
                for i in todo
                if isinstance(answers[i], errors.Throttled | errors.TransactionConflict)
            ]
            if not todo:
                break
            yield self.back_off(attempt)
        return [answers[i] for i in range(len(items))]

    def _execute(
        self, statements: Sequence[dict[str, Any]]
    ) -> Steps[list[AlreadyThere | LedgerError | None]]:
        try:
            answer = yield from self.send(
                Operation("batch_execute_statement", {"Statements": statements}), True
            )
        except LedgerError as error:
            return [copy.copy(error) for _ in statements]
        unanswered = [{"Error": {"Code": "no response"}}] * (
            len(statements) - len(answer["Responses"])
        )
        resent = failures.attempts_of(answer) > 1
        return [
            _statement_answer(part.get("Error"), resent)
            for part in (*answer["Responses"], *unanswered)
        ]

    def _get_batch(self, keys: Sequence[Key], consistent: bool) -> Steps[list[Item | None]]:
        found: dict[Key, Item] = {}
        todo: Any = {
            self.name: {"Keys": [keyed(key) for key in keys], "ConsistentRead": consistent}
        }
        for attempt in range(TRIES_MAX):
            answer = yield from self.persist(
                Operation("batch_get_item", {"RequestItems": todo}), False
            )
            found |= {ask.key_of(item): item for item in answer["Responses"].get(self.name, [])}
            todo = answer.get("UnprocessedKeys")
            if not todo:
                return [found.get(key) for key in keys]
            yield self.back_off(attempt)
        raise errors.Throttled(
            f"BatchGetItem left keys {TRIES_MAX} times. Nothing was written. Call again, slower."
        )


def _statement_answer(error: Any, resent: bool) -> AlreadyThere | LedgerError | None:
    """The answer to one statement.

    One that was refused after the batch was `resent` may have been applied before.
    """
    if not error:
        return None
    code, message = error.get("Code", ""), error.get("Message", "")
    if code in failures.DUPLICATE or code == "ConditionalCheckFailed":
        return AlreadyThere(error.get("Item"), resent)
    refusal = None if resent else failures.known(code, f"PartiQL: {message}")
    return refusal or failures.no_answer("PartiQL", True, f"{code}: {message}")


def _chunks(parts: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [parts[i : i + size] for i in range(0, len(parts), size)]
