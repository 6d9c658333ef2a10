"""The text of an environment variable, read as the setting that it gives.

Rule 1: What cannot be read names its variable; what is spelt otherwise than a setting is told, and never left out.
"""

import json
from dataclasses import fields
from typing import Any, TypeVar

from ledger.checks import meant
from ledger.errors import InvalidSettings, shown
from ledger.limit import Limit, Threshold

Made = TypeVar("Made", Limit, Threshold)

_FORMATS = {
    "regions": "names with commas",
    "shards": 'JSON such as {"stock:": 4}',
    "limits": 'JSON such as {"stock:": {"floor": 0}}',
    "thresholds": 'JSON such as {"stock:": [{"below": 10}]}',
    "clean": "true or false",
    "insert_only": "true or false",
    "unshared_limits": "true or false",
}


def parsed(name: str, variable: str, text: object) -> Any:
    """The setting `name`, of the text of its variable. Raises InvalidSettings."""
    try:
        if type(text) is not str:
            raise TypeError
        return _parsed(name, text)
    except InvalidSettings as error:
        raise InvalidSettings(f"{variable}: {error.why}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidSettings(
            f"{variable}={shown(text, 200)} cannot be read as {name}: give {_FORMATS.get(name, 'an int')}."
        ) from None


def _parsed(name: str, text: str) -> Any:
    match name:
        case "table" | "region" | "endpoint_url":
            return text
        case "regions":
            return tuple(part.strip() for part in text.split(",") if part.strip())
        case "shards":
            return dict(_json(text).items())
        case "limits":
            return {prefix: _made(Limit, said) for prefix, said in _json(text).items()}
        case "thresholds":
            return {prefix: tuple(_thresholds(some)) for prefix, some in _json(text).items()}
        case "clean" | "insert_only" | "unshared_limits":
            return {"true": True, "false": False}[text.lower()]
        case _:
            return int(text)


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; of two that are said of one prefix nobody knows which is meant."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError
    return dict(pairs)


def _thresholds(said: object) -> list[Threshold]:
    if not isinstance(said, list):
        raise TypeError
    return [_made(Threshold, each) for each in said]


def _made(kind: type[Made], said: object) -> Made:
    if not isinstance(said, dict):
        raise TypeError
    keys = [field.name for field in fields(kind)]
    for key in said:
        if key not in keys:
            raise InvalidSettings(f"A {kind.__name__} has no {shown(key)}: it has {', '.join(keys)}.{meant(key, keys)}")
    return kind(**said)
