"""Turns a batch of PartiQL INSERTs into PutItems, and their answers back: MiniStack puts no INSERT into its streams.

The rules a change must keep: pure; only the statements that this library sends are known; each put has the condition
that an INSERT has; the answer is what AWS documents: DuplicateItem, with the item that was there when ALL_OLD is asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

OPERATION = "BatchExecuteStatement"
_INSERT = re.compile(r'INSERT INTO "([^"]+)" VALUE \{(.*)\}')
_ATTRIBUTE = re.compile(r"'([^']+)': \?")


def puts_of(body: bytes) -> list[bytes]:
    """The bodies of the PutItems that do what a batch asks for. Raises ValueError for a statement that is no INSERT."""
    return [json.dumps(_put_of(statement)).encode() for statement in json.loads(body)["Statements"]]


def answer_of(answers: Sequence[tuple[int, bytes]]) -> bytes:
    """The batch's answer from the answers (status, body) to its puts."""
    return json.dumps({"Responses": [_response_of(status, json.loads(body)) for status, body in answers]}).encode()


def _put_of(statement: dict[str, Any]) -> dict[str, Any]:
    insert = _INSERT.fullmatch(statement["Statement"])
    if insert is None:
        raise ValueError(f"not an INSERT: {statement['Statement']}")
    names = _ATTRIBUTE.findall(insert[2])
    return {
        "TableName": insert[1],
        "Item": dict(zip(names, statement["Parameters"], strict=True)),
        "ConditionExpression": "attribute_not_exists(pk)",
        "ReturnValuesOnConditionCheckFailure": statement.get("ReturnValuesOnConditionCheckFailure", "NONE"),
    }


def _response_of(status: int, body: dict[str, Any]) -> dict[str, Any]:
    if status == 200:
        return {}
    code = body["__type"].rpartition("#")[2]
    if code != "ConditionalCheckFailedException":
        return {"Error": {"Code": code.removesuffix("Exception"), "Message": body.get("message", "")}}
    item = {"Item": body["Item"]} if "Item" in body else {}
    return {"Error": {"Code": "DuplicateItem", "Message": "Duplicate primary key exists in table"} | item}
