"""Reads attributes of items as what they must be, for the files that know our formats.

Rule 1: an attribute that is missing or not as described is a DamagedItem with the item's key.
Nobody guesses it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ledger.core.errors import DamagedItem, InvalidInput
from ledger.core.requests import Item, key_of

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,37}")
Value = TypeVar("Value")


def decoded(item: Item, pk: str, decode: Callable[[], Value], sk: str | None = None) -> Value:
    try:
        if text_of(item, "pk") != pk or (sk is not None and text_of(item, "sk") != sk):
            raise ValueError("its key is not the one that was requested")
        return decode()
    except (ValueError, OverflowError) as error:  # a number of seconds may be no timedelta
        why = error.why if isinstance(error, InvalidInput) else str(error)
        key = key_of(item)
        raise DamagedItem(key.pk, key.sk, why.rstrip(".")) from None


def number(value: int) -> Mapping[str, str]:
    return {"N": str(value)}


def text_of(item: Item, name: str) -> str:
    value = item.get(name, {}).get("S")
    if not isinstance(value, str):
        raise ValueError(f"{name} is missing or not a string")
    return value


def integer(item: Item, name: str) -> int:
    value = item.get(name, {}).get("N")
    if not isinstance(value, str) or not _INTEGER.fullmatch(value):
        raise ValueError(f"{name} is missing or not a whole number")
    return int(value)


def list_of(item: Item, name: str) -> list[Any]:
    value = item.get(name, {}).get("L")
    if not isinstance(value, list) or not all(isinstance(element, Mapping) for element in value):
        raise ValueError(f"{name} is missing or not a list")
    return value


def binary(item: Item, name: str) -> bytes:
    value = item.get(name, {}).get("B")
    if not isinstance(value, bytes | bytearray):
        raise ValueError(f"{name} is missing or not binary")
    return bytes(value)
