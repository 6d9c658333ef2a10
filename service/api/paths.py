"""What a path asks for, and the counter's name in it.

Rule 1: A path alone never says for certain which counter is meant. API Gateway's HTTP API decodes it twice and cuts it
between, at the first `?`, so the paths of `a`, `a?b` and `%61` arrive alike.
Rule 2: Another gateway resolves dots or merges slashes. So a read names its counter in the query, and a write with a
name in its path names it again in its body: nothing is decoded twice there.
Rule 3: That name decides, and a path that arrives with another one is refused. The last part of a path decides what is
asked. Here a name becomes one safe part, which is what Powertools' router matches.
Source of what API Gateway does: requests to it, recorded in https://github.com/hotsock/voker (ingress-paths.json).
"""

import re
from functools import partial
from urllib.parse import quote

from service.api.documented import ROUTES
from service.api.problems import Problem

IN_PATH = "^[!-$&->@-~]{1,256}$"
"""A name that can stand in a path: as any name, without % and ?."""

_NAMED = "<(counter|id)>"
_PATTERNS = [(route, re.compile(re.sub(_NAMED, r"(?P<\1>.*)", route.path), re.DOTALL)) for route in ROUTES]
_ELSEWHERE = "Give such a name in the body of POST /deltas."


def routed(path: str, pages: tuple[str, ...] = ()) -> tuple[str, str]:
    """The path to route, each name in it one safe part, and its method. `pages` are further paths. Raises Problem."""
    if path in pages:
        return path, "GET"
    for route, pattern in _PATTERNS:
        if match := pattern.fullmatch(path):
            if not re.fullmatch(IN_PATH, match.groupdict().get("counter", "none")):
                raise _invalid_counter()
            return re.sub(_NAMED, partial(_quoted, match), route.path), route.method
    raise no_such_route()


def same(in_path: str, in_body: str) -> None:
    """Raises Problem unless the path and the body name the same counter."""
    if in_path != in_body:
        raise Problem(
            "other-counter",
            "The path, as it arrived, has another counter than the body names. If they were the same when they were "
            f"sent, a gateway changed the path. {_ELSEWHERE}",
        )


def _quoted(match: re.Match[str], part: re.Match[str]) -> str:
    return quote(match[part[1]], safe="")


def _invalid_counter() -> Problem:
    return Problem(
        "invalid-counter",
        "In a path, a counter's name is 1 to 256 printable ASCII characters without spaces, % and ?. " + _ELSEWHERE,
    )


def no_such_route() -> Problem:
    return Problem("no-such-route", "The paths are those of docs/openapi.json.")
