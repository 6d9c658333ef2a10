"""A history as a person reads it: one line a step, in the words of the glossary."""

from collections.abc import Mapping
from typing import Any

from ledger.core.errors import LedgerError
from ledger.core.requests import (
    At,
    Delete,
    DeleteMany,
    Get,
    GetMany,
    Key,
    Page,
    Put,
    Query,
    Together,
    Transact,
    Update,
    key_of,
)
from simulator.world import Landing


class Trace:
    """Collects what happens. `lines` has the last `most` lines."""

    def __init__(self, most: int = 400) -> None:
        self.lines: list[str] = []
        self._most = most

    def __call__(self, who: str, what: object, result: object) -> None:
        request, answer = in_words(what, result)
        self.lines.append(f"{who:<24} {request}{' -> ' if answer else ''}{answer}")
        del self.lines[: -self._most]


def in_words(what: object, result: object) -> tuple[str, str]:
    """The request or the happening, and its result, in words."""
    done = result is None and isinstance(what, Put | Update | Delete | Transact | DeleteMany)
    return _said(what), "" if result == "" else "done" if done else _said(result)


def _said(what: object) -> str:
    match what:
        case At(region, request):
            return f"{_said(request)} in {region}"
        case Get(keys, consistent) | GetMany(keys, consistent):
            return f"get {_said(keys)}{_how(consistent)}"
        case Query(pk, after, upto, _, consistent):
            return (
                f"query {_short(pk)} ({_short(after or '-')}, "
                f"{_short(upto or '-')}]{_how(consistent)}"
            )
        case Put(written) | Update(written) | Delete(written) | DeleteMany(written):
            return f"{type(what).__name__.removesuffix('Many').lower()} {_said(written)}"
        case Transact(writes) if all(isinstance(write, Put) for write in writes):
            return (
                "commit "
                f"{' and '.join(_item(write.item) for write in writes if isinstance(write, Put))}"
            )
        case Transact(writes):
            return f"one transaction over {', '.join(_key(write.key) for write in writes)}"
        case Together(requests):
            return "; ".join(map(_said, requests))
        case None:
            return "nothing there"
        case LedgerError():
            return f"{type(what).__name__}"
        case Page(items, last):
            return f"[{', '.join(map(_said, items))}]{' and more' if last else ''}"
        case Landing():
            return "decided, not yet visible"
        case Key():
            return _key(what)
        case (Key() as key, None):
            return f"{_key(key)} deleted"
        case (Key(), dict() as item):
            return _item(item)
        case Mapping():
            return _item(what)
        case (str(region), request):
            return f"from {region}: {_said(request)}"
        case tuple():
            return f"({', '.join(map(_said, what))})"
        case _:
            return str(what)


def _item(item: Mapping[str, Mapping[str, Any]]) -> str:
    there = (
        (name, item[name]) for name in ("change", "total", "version", "watermark") if name in item
    )
    values = [f"{name} {value.get('N', _short(str(value.get('S', ''))))}" for name, value in there]
    return f"{_key(key_of(item))}{' (' + ', '.join(values) + ')' if values else ''}"


def _key(key: Key) -> str:
    return f"{_short(key.pk)}/{_short(key.sk)}"


def _short(text: str) -> str:
    """A key without the middle of its tokens, which is the same in every line of a trace."""
    parts = [
        f"…{part[-4:]}" if len(part) == 26 else part.lstrip("0") or part for part in text.split("#")
    ]
    return "#".join(parts)


def _how(consistent: bool) -> str:
    return "" if consistent else " eventually"
