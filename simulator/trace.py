"""A history as a person reads it: one line a step, in the words of the glossary."""

from collections.abc import Mapping
from typing import Any

from ledger.errors import LedgerError
from ledger.requests import (
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
    """Collects what happens. `lines` are at most `most`, the last ones."""

    def __init__(self, most: int = 400) -> None:
        self.lines: list[str] = []
        self._most = most

    def __call__(self, who: str, what: object, came: object) -> None:
        asked, answer = in_words(what, came)
        self.lines.append(f"{who:<24} {asked}{' -> ' if answer else ''}{answer}")
        del self.lines[: -self._most]


def in_words(what: object, came: object) -> tuple[str, str]:
    """What was asked or happened, and what came of it."""
    done = came is None and isinstance(what, Put | Update | Delete | Transact | DeleteMany)
    return _said(what), "" if came == "" else "done" if done else _said(came)


def _said(what: object) -> str:
    match what:
        case At(region, request):
            return f"{_said(request)} in {region}"
        case Get(keys, consistent) | GetMany(keys, consistent):
            return f"get {_said(keys)}{_how(consistent)}"
        case Query(pk, after, upto, _, consistent):
            return f"query {_short(pk)} ({_short(after or '-')}, {_short(upto or '-')}]{_how(consistent)}"
        case Put(written) | Update(written) | Delete(written) | DeleteMany(written):
            return f"{type(what).__name__.removesuffix('Many').lower()} {_said(written)}"
        case Transact(writes):
            return f"commit {' and '.join(map(_said, writes))}"
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
        case Mapping():
            return _item(what)
        case tuple():
            return f"({', '.join(map(_said, what))})"
        case _:
            return str(what)


def _item(item: Mapping[str, Mapping[str, Any]]) -> str:
    there = ((name, item[name]) for name in ("change", "total", "version", "watermark") if name in item)
    values = [f"{name} {value.get('N', _short(str(value.get('S', ''))))}" for name, value in there]
    return f"{_key(key_of(item))}{' (' + ', '.join(values) + ')' if values else ''}"


def _key(key: Key) -> str:
    return f"{_short(key.pk)}/{_short(key.sk)}"


def _short(text: str) -> str:
    """A key without what is the same in every line of a trace: the middle of its tokens."""
    parts = [f"…{part[-4:]}" if len(part) == 26 else part.lstrip("0") or part for part in text.split("#")]
    return "#".join(parts)


def _how(consistent: bool) -> str:
    return "" if consistent else " eventually"
