"""Attributes in DynamoDB's own spelling, and the placeholders that stand for them in an expression.

Rules: nothing here knows a counter; a number is a whole one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.requests import Item, Key

Value = Mapping[str, Any]
"""An attribute's value in DynamoDB's own spelling: {"N": "-6"}."""


def number(value: int) -> Value:
    return {"N": str(value)}


def text(value: str) -> Value:
    return {"S": value}


def keyed(key: Key, **attributes: Value) -> Item:
    return {"pk": text(key.pk), "sk": text(key.sk), **attributes}


def integer(item: Item | None, name: str) -> int:
    """The number that an item has under this name; 0 where it has none."""
    return int((item or {}).get(name, number(0))["N"])


def said(item: Item | None, name: str) -> str | None:
    """The text that an item has under this name; None where it has none."""
    value = (item or {}).get(name)
    return None if value is None else str(value["S"])


class Names:
    """The placeholders of one request: no attribute and no value is spelled in an expression."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, Value] = {}

    def name(self, attribute: str) -> str:
        self.names[f"#{attribute}"] = attribute
        return f"#{attribute}"

    def value(self, value: Value) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = value
        return placeholder

    def arguments(self) -> dict[str, Any]:
        given = {"ExpressionAttributeNames": self.names, "ExpressionAttributeValues": self.values}
        return {argument: placeholders for argument, placeholders in given.items() if placeholders}
