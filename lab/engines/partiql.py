"""Turns a batch of PartiQL writes into requests of one item each, and their answers back: MiniStack
shows its streams, and so other Regions, no PartiQL.

Rule 1: Only the statements that this library sends are known.
Rule 2: Each write has the condition that its statement has.
Rule 3: The answer is what AWS documents: DuplicateItem for an INSERT, ConditionalCheckFailed for a
DELETE, with the item that was there when the request wants ALL_OLD.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

OPERATION = "BatchExecuteStatement"
_INSERT = re.compile(r'INSERT INTO "([^"]+)" VALUE \{(.*)\}')
_MEMBER = re.compile(r"'([^']+)': \?")
_DELETE = re.compile(r'DELETE FROM "([^"]+)" WHERE (.*)')
_TERM = re.compile(r'"([^"]+)" = \?')

Answer = tuple[int, bytes]  # status and body


def requests_of(body: bytes) -> list[tuple[str, bytes]]:
    """Operation and body of the requests that do what a batch asks for.

    Raises ValueError for any other statement.
    """
    requests = [request_of(statement) for statement in json.loads(body)["Statements"]]
    return [(operation, json.dumps(request).encode()) for operation, request in requests]


def answer_of(answers: Sequence[tuple[str, Answer]]) -> bytes:
    """The batch's answer from (operation, answer) of its requests."""
    return json.dumps(
        {"Responses": [_response_of(operation, *answer) for operation, answer in answers]}
    ).encode()


def request_of(statement: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Operation and request of one statement, all of whose values are parameters.

    Raises ValueError for any other.
    """
    text, values = statement["Statement"], statement.get("Parameters", [])
    returned = {
        "ReturnValuesOnConditionCheckFailure": statement.get(
            "ReturnValuesOnConditionCheckFailure", "NONE"
        )
    }
    if insert := _INSERT.fullmatch(text):
        item = dict(zip(_MEMBER.findall(insert[2]), values, strict=True))
        condition = "attribute_not_exists(pk)"
        return "PutItem", {
            "TableName": insert[1],
            "Item": item,
            "ConditionExpression": condition,
            **returned,
        }
    delete = _DELETE.fullmatch(text)
    if delete is None:
        raise ValueError(f"neither an INSERT nor a DELETE: {text}")
    item = dict(zip(_TERM.findall(delete[2]), values, strict=True))
    key = {name: item.pop(name) for name in ("pk", "sk")}
    numbered = {f"a{n}": each for n, each in enumerate(item.items())}
    equal = " AND ".join(f"#{n} = :{n}" for n in numbered) or "attribute_exists(pk)"
    names = {
        "ExpressionAttributeNames": {f"#{n}": name for n, (name, _) in numbered.items()},
        "ExpressionAttributeValues": {f":{n}": value for n, (_, value) in numbered.items()},
    }
    condition = f"attribute_not_exists(pk) OR ({equal})"
    return "DeleteItem", {
        "TableName": delete[1],
        "Key": key,
        "ConditionExpression": condition,
        **(names if numbered else {}),
        **returned,
    }


def _response_of(operation: str, status: int, text: bytes) -> dict[str, Any]:
    if status == 200:
        return {}
    body = json.loads(text)
    code = body["__type"].rpartition("#")[2]
    if code != "ConditionalCheckFailedException":
        return {
            "Error": {"Code": code.removesuffix("Exception"), "Message": body.get("message", "")}
        }
    item = {"Item": body["Item"]} if "Item" in body else {}
    failed = "DuplicateItem" if operation == "PutItem" else "ConditionalCheckFailed"
    return {"Error": {"Code": failed, "Message": "The condition failed"} | item}
