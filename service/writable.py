"""Which counters the HTTP API and the changes queue write.

Rule 1: A name that begins with RESERVED is the service's own: a change beside a canary's would
raise value-wrong.
Rule 2: Where there are prefixes, a name begins with one of them. A lane stays in the directory for
ever, so a caller who may choose names at will makes costs that nobody can take back.
Rule 3: The library takes every name: these rules are for callers whom a gateway or a queue let in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ledger.core.checks import wrong_prefix
from ledger.core.errors import InvalidCounter, InvalidSettings

RESERVED = "ledger:"
PREFIXES_FROM = "LEDGER_ALLOWED_PREFIXES"


def prefixes_of(environ: Mapping[str, str]) -> tuple[str, ...]:
    """From LEDGER_ALLOWED_PREFIXES, a JSON list: an empty one allows all names but reserved ones.

    Raises InvalidSettings."""
    text = environ.get(PREFIXES_FROM, "[]")
    try:
        prefixes = json.loads(text)
    except ValueError:
        prefixes = None
    if not isinstance(prefixes, list):
        raise InvalidSettings(
            f'{PREFIXES_FROM}={text!r} is not a JSON list of prefixes, such as ["stock:"].'
        )
    for prefix in prefixes:
        if why := wrong_prefix(prefix):
            raise InvalidSettings(f"{PREFIXES_FROM}: {prefix!r}: {why}")
    return tuple(prefixes)


def refusal(counter: str, prefixes: tuple[str, ...]) -> InvalidCounter | None:
    """Why nobody may write this counter here; None: callers may."""
    if counter.startswith(RESERVED):
        return InvalidCounter(
            f"Names that begin with {RESERVED} are the service's own: choose another name."
        )
    if prefixes and not counter.startswith(prefixes):
        return InvalidCounter(
            f"This service writes only counters whose names begin with {', '.join(prefixes)}."
        )
    return None
