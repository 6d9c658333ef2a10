"""Attributes in DynamoDB's own spelling; a number is a whole one."""

from ledger.conditions import Item, Value


def number(value: int) -> Value:
    return {"N": str(value)}


def text(value: str) -> Value:
    return {"S": value}


def integer(item: Item | None, name: str) -> int:
    """The number that an item has under this name; 0 where it has none."""
    return int((item or {}).get(name, number(0))["N"])


def said(item: Item | None, name: str) -> str | None:
    """The text that an item has under this name; None where it has none."""
    value = (item or {}).get(name)
    return None if value is None else str(value["S"])
