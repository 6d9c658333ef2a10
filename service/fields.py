"""How a field of a work message is read. One that is not as described raises ValueError or TypeError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compactor.named import Named
from ledger import items

KEY_MAX = 64
"""Characters of the longest sort key of an item that holds changes; a pack's has 59."""

TRIES_MAX = 10**6


def named_of(keys: Any, between: Any) -> Named:
    if not all(isinstance(each, list) for each in (keys, between, *between)) or any(len(pair) != 2 for pair in between):
        raise ValueError(between)
    for key in (*keys, *(key for pair in between for key in pair)):
        sort_key(key)
    return Named.of(keys) | Named((), tuple((first, last) for first, last in between))


def sort_key(given: Any) -> str:
    if not (isinstance(given, str) and len(given) <= KEY_MAX and items.highest_of(given)):
        raise ValueError(given)
    return given


def flag(given: Any) -> bool:
    if type(given) is not bool:
        raise ValueError(given)
    return given


def whole(most: int) -> Callable[[Any], int]:
    def read(given: Any) -> int:
        if type(given) is not int or not 0 <= given <= most:
            raise ValueError(given)
        return given

    return read
