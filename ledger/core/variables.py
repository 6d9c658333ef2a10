"""The variables of the environment that have settings: their names, and how each text is read.

Rule 1: an error names the variable that cannot be read. A key that is no setting is an error:
nobody skips it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from ledger.core.errors import InvalidSettings, shown
from ledger.core.keep import Keep
from ledger.core.limit import Limit, Threshold

Rule = TypeVar("Rule")
Made = TypeVar("Made", Limit, Threshold)

REGION_FROM = "AWS_REGION"


def read(environ: Mapping[str, object], names: Iterable[str]) -> dict[str, Any]:
    """The settings with these names that have a variable. An empty one counts as none.

    Raises InvalidSettings.
    """
    found: dict[str, Any] = {}
    for name in names:
        variable = REGION_FROM if name == "region" else f"LEDGER_{name.upper()}"
        text = environ.get(variable)
        if text is not None and not (type(text) is str and not text):
            found[name] = _parsed(name, variable, text)
    return found


def _parsed(name: str, variable: str, text: object) -> Any:
    """The setting `name`, read from the text of its variable. Raises InvalidSettings."""
    parse, expected = _READ.get(name, (int, "an int"))
    try:
        if type(text) is not str:
            raise TypeError
        return parse(text)
    except InvalidSettings as error:
        raise InvalidSettings(f"{variable}: {error.why}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        raise InvalidSettings(
            f"{variable}={shown(text, 200)} cannot be read as {name}: it is {expected}."
        ) from None


def _read_by_prefix(make: Callable[[Any], Rule]) -> Callable[[str], dict[str, Rule]]:
    """A function that reads an object of JSON and makes a rule of each prefix's value."""
    return lambda text: {
        prefix: make(said) for prefix, said in json.loads(text, object_pairs_hook=_once).items()
    }


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON.

    Raises ValueError where a prefix has two values: nobody knows which is meant.
    """
    if len(dict(pairs)) < len(pairs):
        raise ValueError
    return dict(pairs)


def _thresholds(said: object) -> tuple[Threshold, ...]:
    if not isinstance(said, list):
        raise TypeError
    return tuple(_made(Threshold, threshold) for threshold in said)


def _keep(said: object) -> Keep:
    if (
        not isinstance(said, dict)
        or not {*said} <= {"late_s", "keep_s", "carry", "anchor"}
        or bool in map(type, said.values())
    ):
        raise TypeError
    late, keep = (timedelta(seconds=said[name]) for name in ("late_s", "keep_s"))
    anchor = datetime.fromisoformat(said["anchor"]) if "anchor" in said else None
    return Keep(late=late, keep=keep, carry=said.get("carry", 0), anchor=anchor)


def _made(kind: type[Made], said: object) -> Made:
    if not isinstance(said, dict):
        raise TypeError
    keys = [field.name for field in fields(kind)]
    for key in said:
        if key not in keys:
            raise InvalidSettings(
                f"A {kind.__name__} has no {shown(key)}: it has {', '.join(keys)}."
            )
    return kind(**said)


_READ: dict[str, tuple[Callable[[str], Any], str]] = {
    **dict.fromkeys(("table", "region", "endpoint_url", "client"), (str, "text")),
    "regions": (
        lambda text: [part.strip() for part in text.split(",") if part.strip()],
        "names with commas",
    ),
    "shards": (_read_by_prefix(lambda number: number), 'JSON such as {"stock:": 4}'),
    "limits": (_read_by_prefix(partial(_made, Limit)), 'JSON such as {"stock:": {"floor": 0}}'),
    "thresholds": (_read_by_prefix(_thresholds), 'JSON such as {"stock:": [{"below": 10}]}'),
    "periods": (
        _read_by_prefix(_keep),
        'JSON such as {"llm:": {"late_s": 1296000, "keep_s": 34560000}}',
    ),
    **dict.fromkeys(
        ("clean", "insert_only", "unshared_limits"),
        (lambda text: {"true": True, "false": False}[text.lower()], "true or false"),
    ),
}
"""The function that reads a setting's variable, and the text that an error expects. The other
settings are numbers.
"""
