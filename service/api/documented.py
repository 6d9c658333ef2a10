"""The routes, by group, and what each answers: for the router, for docs/openapi.json and for the
page to try the API.

Rule 1: The model of an answer is that of the method's annotation, and the description is the
method's docstring. Any route may answer any problem, so openapi.py describes them once.
Rule 2: The groups have the names and the order of the sections of docs/http-api.md.
"""

from typing import Any, NamedTuple

from ledger import __version__


class Route(NamedTuple):
    """As Powertools' router takes it. status_code: of an answer that is a model alone."""

    method: str
    rule: str
    operation_id: str
    summary: str
    responses: dict[int, Any]
    status_code: int = 200
    tags: list[str] | None = None


def _counts(now: str, before: str) -> dict[int, Any]:
    hit = f"Replayed: the same {before} before, and counts once (header Idempotency-Hit: true)"
    return {201: {"description": f"{now}: it counts from now on"}, 200: {"description": hit}}


_READS = {200: {"description": "The answer"}}
_BULK = {200: {"description": "A result for each change, in their order"}}
_ADDED, _CAPTURED = (
    _counts("Recorded", "change was recorded"),
    _counts("Captured", "amount was captured"),
)
_HELD = {201: {"description": "The hold was granted, now or before"}}
_RELEASED = {204: {"description": "Released, now or before"}}
_RESERVED = {201: {"description": "All holds were granted, now or before"}}
_SETTLED = {200: {"description": "Settled, now or before"}}
_MOVED = {
    201: {"description": "Moved: it counts from now on"},
    200: {
        "description": "Replayed: the same transfer was made before (header Idempotency-Hit: true)"
    },
}
_HOLDS = "/counters/<counter>/holds"

_GROUPS: dict[str, dict[str, Route]] = {
    "Add a change": {
        "add": Route("POST", "/counters/<counter>/deltas", "add", "Add a change", _ADDED, 201),
        "add_many": Route("POST", "/deltas", "addMany", "Add up to 100 changes", _BULK),
    },
    "Read": {
        "read_or_list": Route(
            "GET", "/counters", "readAny", "Read a counter, or list counters", _READS
        ),
        "history": Route("GET", "/history", "historyAny", "List a counter's changes", _READS),
        "series": Route("GET", "/series", "series", "List what changed, step by step", _READS),
        "periods": Route(
            "GET", "/periods", "periods", "List the values of a counter's periods", _READS
        ),
    },
    "Limits and holds": {
        "standing": Route(
            "GET", "/standing", "standingAny", "Read what is left of a limit", _READS
        ),
        "hold": Route("POST", _HOLDS, "hold", "Hold a part of a limit", _HELD, 201),
        "capture": Route(
            "POST", f"{_HOLDS}/<id>/capture", "capture", "Count a hold", _CAPTURED, 201
        ),
        "release": Route(
            "POST", f"{_HOLDS}/<id>/release", "release", "Release a hold", _RELEASED, 204
        ),
    },
    "Reservations": {
        "reserve": Route(
            "POST", "/reservations", "reserve", "Hold an amount in several counters", _RESERVED, 201
        ),
        "settle": Route(
            "POST", "/reservations/settle", "settle", "Count the cost of a reservation", _SETTLED
        ),
        "release_all": Route(
            "POST", "/reservations/release", "releaseAll", "Release a reservation", _RELEASED, 204
        ),
    },
    "Transfers": {
        "transfer": Route(
            "POST", "/transfers", "transfer", "Move an amount to another counter", _MOVED, 201
        ),
    },
}
ROUTES = {
    name: route._replace(tags=[group])
    for group, routes in _GROUPS.items()
    for name, route in routes.items()
}
"""By the name of its method in `Routes` or `Sagas`."""

ABOUT: dict[str, Any] = {
    "title": "exact-counter",
    "version": __version__,
    "description": (
        "Exact counters: a change that is acknowledged counts exactly once. Every failure is an "
        "RFC 9457 problem; docs/http-api.md describes them. API Gateway decides who may call, by "
        "IAM (SigV4) or by a JWT authorizer."
    ),
    "tags": list(_GROUPS),
}
"""What docs/openapi.json and the page at /try-it say of the API as a whole."""
