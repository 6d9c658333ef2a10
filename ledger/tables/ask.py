"""A request as an operation of DynamoDB, and the meaning of the operation's answer: pure, for every
way of sending.

Rule 1: this file sends nothing and waits for nothing; a request that one call answers is one
operation.
Rule 2: a write requests the item that made its condition fail, so that nobody reads it again.
Rule 3: the text of a statement follows from the names of the item's attributes alone; values are
parameters.
Source:
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Operations_Amazon_DynamoDB.html
"""

import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

from ledger.core import errors, items
from ledger.core.conditions import Absent
from ledger.core.requests import (
    Delete,
    Get,
    Item,
    Key,
    KeyPage,
    Page,
    Put,
    Query,
    Scan,
    Transact,
    Update,
    Write,
    keyed,
)
from ledger.tables.expressions import expressions

GET_KEYS_MAX, STATEMENTS_MAX = 100, 25
_SHOW = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}

Statement = Callable[[str, Item], dict[str, Any]]
"""A PartiQL statement for (table, item)."""


class Operation(NamedTuple):
    """The name of a method of boto3's client, and its arguments."""

    name: str
    arguments: dict[str, Any]


def operation(request: Write | Transact | Get | Query | Scan, table: str) -> Operation:
    """The operation that answers a request. A Transact without a token gets one of its own."""
    match request:
        case Put() | Update() | Delete():
            shown = (
                {"ReturnValues": "ALL_NEW"} if isinstance(request, Update) and request.shows else {}
            )
            return Operation(
                f"{type(request).__name__.lower()}_item", _write(request, table) | shown
            )
        case Transact(writes, token):
            actions = [{type(write).__name__: _write(write, table)} for write in writes]
            # DynamoDB knows a token in all tables of an account and Region, and takes at most 36
            # characters.
            named = (
                uuid.uuid4()
                if token is None
                else uuid.uuid5(uuid.NAMESPACE_OID, f"{table}\0{token}")
            )
            return Operation(
                "transact_write_items", {"TransactItems": actions, "ClientRequestToken": str(named)}
            )
        case Get(key, consistent):
            return Operation(
                "get_item", {"TableName": table, "Key": keyed(key), "ConsistentRead": consistent}
            )
        case Query():
            return Operation("query", {"TableName": table, **_query(request)})
        case Scan(after):
            start = {"ExclusiveStartKey": keyed(after)} if after else {}
            return Operation(
                "scan", {"TableName": table, "ProjectionExpression": "pk, sk", **start}
            )


def answer(request: Get | Query | Scan, response: Any) -> Any:
    """The answer to a read, as `requests.py` describes it.

    Raises TableMismatch for a key of another shape.
    """
    last = response.get("LastEvaluatedKey")
    match request:
        case Get():
            return response.get("Item")
        case Query():
            return Page(tuple(response["Items"]), key_of(last).sk if last else None)
        case Scan():
            return KeyPage(tuple(map(key_of, response["Items"])), key_of(last) if last else None)


def insert(table: str, item: Item) -> dict[str, Any]:
    """A PartiQL INSERT, which fails when the key exists: a conditional put."""
    attributes = ", ".join(f"'{name}': ?" for name in item)
    return _parametrised(f'INSERT INTO "{table}" VALUE {{{attributes}}}', item)


def is_insert(put: Put) -> bool:
    """Whether an INSERT can stand for a put: for that of a delta, or of a pack, whose key names
    its content.
    """
    found = items.lane_of(put.key.pk)
    in_a_lane = found is not None and found[0] == "delta"
    return in_a_lane and put.condition == (None if items.is_pack(put.key.sk) else Absent())


def delete(table: str, item: Item) -> dict[str, Any]:
    """A PartiQL DELETE, which fails when the key has other attributes, and does nothing when there
    is no such key.

    Source:
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.delete.html
    """
    attributes = " AND ".join(f'"{name}" = ?' for name in item)
    return _parametrised(f'DELETE FROM "{table}" WHERE {attributes}', item)


def key_of(item: Any) -> Key:
    """The key of an item from DynamoDB. Raises TableMismatch where it is not two strings."""
    if "S" not in item.get("pk", {}) or "S" not in item.get("sk", {}):
        found = f"An item has the keys {sorted(item)}. Nothing was written."
        raise errors.TableMismatch(f"{found} The table needs the string keys pk and sk.")
    return Key(item["pk"]["S"], item["sk"]["S"])


def _write(write: Write, table: str) -> dict[str, Any]:
    made: dict[str, Any] = {"TableName": table}
    if isinstance(write, Put):
        made["Item"] = write.item
    else:
        made["Key"] = keyed(write.key)
    if write.condition is not None:
        made |= _SHOW
    actions = write.actions if isinstance(write, Update) else ()
    if actions or write.condition is not None:
        made |= expressions(actions, write.condition)
    return made


def _query(query: Query) -> dict[str, Any]:
    condition, values = "pk = :pk", {":pk": {"S": query.pk}}
    low, high = query.after, query.upto
    if low is not None and high is not None:
        # BETWEEN includes its ends; the text that follows `low` at once is `low` and a NUL.
        condition += " AND sk BETWEEN :low AND :high"
        low += "\0"
    elif low is not None:
        condition += " AND sk > :low"
    elif high is not None:
        condition += " AND sk <= :high"
    values |= {
        name: {"S": text} for name, text in ((":low", low), (":high", high)) if text is not None
    }
    return {
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": values,
        "ConsistentRead": query.consistent,
        **({"Limit": query.limit} if query.limit else {}),
    }


def _parametrised(text: str, item: Item) -> dict[str, Any]:
    return {"Statement": text, "Parameters": list(item.values()), **_SHOW}
