"""The expressions of a write, as DynamoDB takes them, each text made once.

Rule 1: a text follows from the *shape* of its actions and its condition: of which kinds their parts
are, and which names are the same. Their names and values stand beside the text, in its order.
"""

from functools import lru_cache
from typing import Any, TypeAlias

from ledger.core.actions import Action, Add, Remove, Set, update_expression
from ledger.core.conditions import (
    Absent,
    All,
    AtLeast,
    AtMost,
    Condition,
    Contains,
    Either,
    Equals,
    Names,
    Not,
)

TEXTS_MAX = 1_000
SHAPE_MAX = 100  # a larger one is of a group or a roll, and hardly comes again

KINDS = {tuple, Set, Add, Remove, Absent, Equals, AtLeast, AtMost, Contains, Not, All, Either}
"""The parts of which the text has what their tuple has, in its order."""

Arguments: TypeAlias = dict[str, Any]
"""Of an operation."""

_texts: dict[tuple[Any, ...], Arguments] = {}


def expressions(actions: tuple[Action, ...], condition: Condition | None) -> Arguments:
    """The expressions of a write that has actions, a condition or both; their names and values."""
    if type(condition) is Absent and not actions:
        text, names_of = _absent(condition)
        return {"ConditionExpression": text, "ExpressionAttributeNames": dict(names_of)}
    shape: list[Any] = []
    names: dict[str, str] = {}
    values: dict[str, Any] = {}
    parts: list[Any] = [condition, actions]  # the last one comes first
    while parts:
        part = parts.pop()
        kind = type(part)
        if kind is str:
            shape.append(names.get(part) or names.setdefault(part, f"#{len(names)}"))
        elif kind in KINDS:
            shape += kind, len(part)
            parts += part[::-1]
        elif kind is dict or kind is int:
            shape.append(dict)
            values[f":{len(values)}"] = part if kind is dict else {"N": str(part)}
        elif part is not None:  # somebody else's: only it knows its text
            others = Names()
            return _texts_of(actions, condition, others) | others.arguments()
    found = _texts.get(key := tuple(shape))
    if found is None:
        found = _texts_of(actions, condition, Names())
        if len(key) <= SHAPE_MAX:
            if len(_texts) >= TEXTS_MAX:
                _texts.clear()
            _texts[key] = found
    arguments: Arguments = {**found, "ExpressionAttributeNames": {n: of for of, n in names.items()}}
    return arguments | {"ExpressionAttributeValues": values} if values else arguments


@lru_cache
def _absent(condition: Absent) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The expression of nearly every put, and its names: each delta has the same."""
    names = Names()
    text = condition.expression(names)
    return text, tuple(names.arguments()["ExpressionAttributeNames"].items())


def _texts_of(
    actions: tuple[Action, ...], condition: Condition | None, names: Names
) -> dict[str, str]:
    texts = {"UpdateExpression": update_expression(actions, names)} if actions else {}
    if condition is not None:
        texts["ConditionExpression"] = condition.expression(names)
    return texts
