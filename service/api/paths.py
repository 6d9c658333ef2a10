"""The counter's name in a path.

Rules: API Gateway's HTTP API hands over the path decoded, so a name may hold `/` there and the last part decides what
is asked; what cannot be told for certain is refused, never guessed, because it would be another counter: a `%`, a part
that is empty or dots (a client or a gateway may have taken some away), a name that ends as a route does. Those names
stand in the query or in the body, where nothing is decoded twice. Here a name becomes one safe part of a path, which
is what Powertools' router matches.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from ledger.errors import InvalidCounter
from ledger.values import check_counter
from service.api.problems import NOT_WRITTEN, Problem

PREFIX = "/counters/"
SUFFIXES = ("/deltas", "/history")
METHODS = {"/counters": "GET", "/history": "GET", "/deltas": "POST"}
"""The paths without a name, and the method of each."""


def routed(path: str, method: str, pages: tuple[str, ...] = ()) -> str:
    """The path to route: the name in it as one part. `pages` are further paths to GET. Raises Problem."""
    if path in METHODS or path in pages:
        _check_method(path, method, METHODS.get(path, "GET"))
        return path
    if not path.startswith(PREFIX):
        raise no_such_route()
    rest = path.removeprefix(PREFIX)
    suffix = next((each for each in SUFFIXES if rest.endswith(each)), "")
    name = rest.removesuffix(suffix)
    _check_method(path, method, "POST" if suffix == "/deltas" else "GET")
    return PREFIX + quote(_checked(name), safe="") + suffix


def name_of(part: str) -> str:
    """The counter's name in a routed path."""
    return unquote(part)


def no_such_route() -> Problem:
    return Problem("no-such-route", f"The paths are those of docs/openapi.json. {NOT_WRITTEN}")


def _check_method(path: str, method: str, allowed: str) -> None:
    if method != allowed:
        detail = f"This path has the method {allowed} only. {NOT_WRITTEN}"
        raise Problem("method-not-allowed", detail, headers={"Allow": allowed})


def _checked(name: str) -> str:
    try:
        check_counter(name)
    except InvalidCounter:
        raise Problem(
            "invalid-counter", f"A counter's name is 1 to 256 printable ASCII characters, no spaces. {NOT_WRITTEN}"
        ) from None
    if "%" in name or any(part in ("", ".", "..") for part in name.split("/")) or name.endswith(SUFFIXES):
        raise Problem(
            "invalid-counter",
            "In a path, a name holds no % or ?, no part of it between / is empty, . or .., and it does not end in "
            "/deltas or /history. Give such a name in the query (GET /counters?counter=, GET /history?counter=) or in "
            f"the body (POST /deltas). {NOT_WRITTEN}",
        )
    return name
