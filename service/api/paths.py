"""What a path asks for, and the counter's name in it.

Rule 1: A path alone never says for certain which counter is meant. API Gateway's HTTP API decodes it twice and cuts it
between, at the first `?`, so the paths of `a`, `a?b` and `%61` arrive alike.
Rule 2: Another gateway resolves dots or merges slashes. So a request with a name in its path names its counter again
where nothing is decoded twice, in the query of a read and in the body of a write.
Rule 3: That name decides, and a path that arrives with another one is refused. The last part of a path decides what is
asked. Here a name becomes one safe part, which is what Powertools' router matches.
Source of what API Gateway does: requests to it, recorded in https://github.com/hotsock/voker (ingress-paths.json).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

from service.api.problems import NOT_WRITTEN, Problem

PREFIX = "/counters/"
SUFFIXES = {"/deltas": "POST", "/holds": "POST", "/history": "GET", "/standing": "GET"}
"""What may follow a name, and the method of each."""

METHODS = {"/counters": "GET", "/history": "GET", "/standing": "GET", "/deltas": "POST"}
"""The paths without a name, and the method of each."""

KEYED = ("/deltas", "/holds")
"""What follows the name where the request has an idempotency key."""

_END = re.compile(r"(.*)/holds/(.*)/(capture|release)", re.DOTALL)
"""A name, a hold's id, and how it ends."""

IN_PATH = "^[!-$&->@-~]{1,256}$"
"""A name that can stand in a path: as any name, without % and ?."""

ELSEWHERE = (
    "Give such a name in the query (GET /counters?counter=, GET /history?counter=, GET /standing?counter=) or in the "
    "body of POST /deltas."
)


def routed(path: str, pages: tuple[str, ...] = ()) -> tuple[str, str]:
    """The path to route, with the name in it as one part, and its method. `pages` are further paths. Raises Problem."""
    if path in METHODS or path in pages:
        return path, METHODS.get(path, "GET")
    if not path.startswith(PREFIX):
        raise no_such_route()
    rest = path.removeprefix(PREFIX)
    if end := _END.fullmatch(rest):
        return f"{_named(end[1])}/holds/{quote(end[2], safe='')}/{end[3]}", "POST"
    suffix = next((each for each in SUFFIXES if rest.endswith(each)), "")
    return _named(rest.removesuffix(suffix)) + suffix, SUFFIXES.get(suffix, "GET")


def _named(name: str) -> str:
    """The path of a name. Raises Problem."""
    if not re.fullmatch(IN_PATH, name):
        raise Problem(
            "invalid-counter",
            "In a path, a counter's name is 1 to 256 printable ASCII characters without spaces, % and ?. "
            f"{ELSEWHERE} {NOT_WRITTEN}",
        )
    return PREFIX + quote(name, safe="")


def same(in_path: str, named: str) -> str:
    """The counter that a request concerns: the one it names, which is the one in its path too. Raises Problem."""
    if in_path != named:
        raise Problem(
            "other-counter",
            "The path, as it arrived, has another counter than the query of a read or the body of a write names. If "
            f"they were the same when they were sent, a gateway changed the path. {ELSEWHERE} {NOT_WRITTEN}",
        )
    return named


def named_again(found: Iterable[Mapping[str, Any]], path: str) -> Iterator[Mapping[str, Any]]:
    """What is wrong with a request; of a read that lacks its counter in the query, what to send."""
    for each in found:
        lacks = each["type"] == "missing" and tuple(each["loc"]) == ("query", "counter")
        if lacks and path.startswith(PREFIX):
            name = quote(unquote(path.removeprefix(PREFIX).partition("/")[0]), safe=":/")
            yield {**each, "msg": f"name the counter again: ?counter={name}"}
        else:
            yield each


def no_such_route() -> Problem:
    return Problem("no-such-route", f"The paths are those of docs/openapi.json. {NOT_WRITTEN}")
