"""The programs from a request to its answer by operations of DynamoDB: `DynamoTable` and
`AsyncDynamoTable` drive them.

Rule 1: `ask.py` has the operations and the meaning of their answers; `send.py` sends, and sends
again.
Rule 2: it goes on until no page and no unprocessed key or item is left.
"""

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ledger.core import errors, requests, running
from ledger.core.conditions import Absent, has
from ledger.core.errors import LedgerError
from ledger.core.requests import (
    AlreadyThere,
    Delete,
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
from ledger.core.running import Doubt
from ledger.tables import ask, failures, refusals
from ledger.tables.ask import Operation
from ledger.tables.send import TRIES_MAX, Endpoint, Sending, all_of, flat

Outcome = AlreadyThere | LedgerError | None
"""The answer to one write of several."""


def answer(at: Endpoint, request: Request) -> Sending[Any]:
    """The answer to a request, as `requests.py` describes it.

    Raises TypeError for anything else.
    """
    match request:
        case Put() if at.insert_only and ask.is_insert(request):
            return (yield from _insert(at, request))
        case Put() | Update() | Delete() | Transact():
            return (yield from _write(at, request))
        case requests.PutMany(items):
            return (yield from _each(at, items, ask.insert, partial(_put_absent, at)))
        case requests.DeleteMany(items):
            return (yield from _each(at, items, ask.delete, partial(_delete, at)))
        case requests.Query(_, str(after), str(upto)) if after >= upto:
            # DynamoDB refuses a range that no sort key can lie in
            return requests.Page((), None)
        case Get() | requests.Query() | requests.Scan():
            response = yield from at.persist(ask.operation(request, at.name), False)
            return ask.answer(request, response)
        case requests.GetMany(keys, consistent) if 0 < len(keys) <= ask.GET_KEYS_MAX:
            return tuple((yield from _get_batch(at, keys, consistent)))
        case requests.GetMany(keys, consistent):
            chunks = _chunks(keys, ask.GET_KEYS_MAX)
            return tuple((yield from flat([_get_batch(at, each, consistent) for each in chunks])))
        case requests.Together(parts):
            return tuple((yield from all_of([answer(at, part) for part in parts])))
        case requests.At(region, inner):
            return (yield from answer(at._replace(region=region), inner))
        case requests.Pause():
            return (yield request)
        case _:
            raise TypeError(f"not a request that a table answers: {request!r}")


def _write(at: Endpoint, request: requests.Write | Transact) -> Sending[Any]:
    try:
        response = yield from at.persist(ask.operation(request, at.name), True)
    except failures.ConditionFailed as failed:
        if isinstance(request, Transact):
            return failed.there
        there = failed.there[0] or {}  # what a Put meets shows whether it is its own
        return Resent(there) if failed.resent and isinstance(request, Update) else there
    shows = isinstance(request, Update) and request.shows
    return Written(response["Attributes"]) if shows else None


def _put_absent(at: Endpoint, item: Item) -> Sending[Any]:
    return answer(at, Put(item, Absent()))


def _delete(at: Endpoint, item: Item) -> Sending[Item | None]:
    """Delete an item. None when it is gone; else the other item that is in its place."""
    return (yield from _write(at, Delete(key_of(item), has(item)))) or None


def _insert(at: Endpoint, put: Put) -> Sending[Item | AlreadyThere | None]:
    """Put a delta or a pack by an INSERT, which can replace nothing and does not show what is
    there.
    """
    # What is there may be of an earlier attempt, so no later request's error says that nothing was
    # written.
    with Doubt() as doubt:
        for _ in range(TRIES_MAX):
            statement = Operation("execute_statement", ask.insert(at.name, put.item))
            try:
                yield from at.persist(statement, True)
                return None
            except LedgerError as error:
                if failures.code_of(error.__cause__) not in refusals.DUPLICATE:
                    raise
                doubt.note(error)
            if put.condition is None:
                return None  # a pack: the item under its name is the same
            try:
                there: Item | None = yield from answer(at, Get(put.key))
            except errors.NotAllowed as refused:
                if not refused.is_denied:
                    raise
                return AlreadyThere(None, resent=True)
            if there is not None:
                return there
            # it was cleaned meanwhile, and is put again, as by any retry that comes so late
        raise errors.TransactionConflict(
            f"Others put and deleted {put.key} {TRIES_MAX} times during this call. Call again."
        )


def _each(
    at: Endpoint,
    items: Sequence[Item],
    statement: ask.Statement,
    single: Callable[[Item], Sending[Any]],
) -> Sending[tuple[Outcome, ...]]:
    """Conditional writes, each on its own: as statements, many a request; alone where PartiQL is
    not allowed.
    """
    chunks = _chunks(items, ask.STATEMENTS_MAX)
    answers = yield from flat([_batch(at, chunk, statement) for chunk in chunks])
    refused = [i for i, answer in enumerate(answers) if errors.is_denied(answer)]
    singles = yield from all_of([single(items[i]) for i in refused])
    for i, answer in zip(refused, singles, strict=True):
        answers[i] = running.outcome(answer)
    return tuple(answers)


def _batch(at: Endpoint, items: Sequence[Item], statement: ask.Statement) -> Sending[list[Outcome]]:
    """Conditional writes in one request; those refused by a conflict or throttling are sent again,
    TRIES_MAX at most.
    """
    answers: dict[int, Outcome] = {}
    todo = list(range(len(items)))
    for attempt in range(TRIES_MAX):
        found = yield from _execute(at, [statement(at.name, items[i]) for i in todo])
        answers |= zip(todo, found, strict=True)
        passing = errors.Throttled | errors.TransactionConflict
        todo = [i for i in todo if isinstance(answers[i], passing)]
        if not todo:
            break
        yield at.back_off(attempt)
    return [answers[i] for i in range(len(items))]


def _execute(at: Endpoint, statements: Sequence[dict[str, Any]]) -> Sending[list[Outcome]]:
    batch = Operation("batch_execute_statement", {"Statements": statements})
    try:
        response = yield from at.send(batch, True)
    except LedgerError as error:
        return [copy.copy(error) for _ in statements]
    found = response["Responses"]
    lacking = [{"Error": {"Code": "no response"}}] * (len(statements) - len(found))
    resent = failures.attempts_of(response) > 1
    return [_statement_answer(part.get("Error"), resent) for part in (*found, *lacking)]


def _statement_answer(error: Any, resent: bool) -> Outcome:
    """The answer to one statement.

    One that was refused after the batch was `resent` may have been applied before.
    """
    if not error:
        return None
    code, message = error.get("Code", ""), error.get("Message", "")
    if code in refusals.DUPLICATE or code == "ConditionalCheckFailed":
        return AlreadyThere(error.get("Item"), resent)
    refusal = None if resent else refusals.known(code, f"PartiQL: {message}")
    return refusal or failures.no_answer("PartiQL", True, f"{code}: {message}")


def _get_batch(at: Endpoint, keys: Sequence[Key], consistent: bool) -> Sending[list[Item | None]]:
    found: dict[Key, Item] = {}
    wanted = {"Keys": [keyed(key) for key in keys], "ConsistentRead": consistent}
    todo: Any = {at.name: wanted}
    for attempt in range(TRIES_MAX):
        batch = Operation("batch_get_item", {"RequestItems": todo})
        response = yield from at.persist(batch, False)
        found |= {ask.key_of(item): item for item in response["Responses"].get(at.name, [])}
        todo = response.get("UnprocessedKeys")
        if not todo:
            return [found.get(key) for key in keys]
        yield at.back_off(attempt)
    raise errors.Throttled(
        f"BatchGetItem left keys unread {TRIES_MAX} times. Nothing was written. Call again, slower."
    )


def _chunks(parts: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [parts[i : i + size] for i in range(0, len(parts), size)]
