"""Which routes there are, and what each may answer: for the router, and for docs/openapi.json.

Rule 1: A status comes with all problems that have it, so a new problem is in the document of every route that has its
status.
"""

from typing import Any, NamedTuple

from service.api.problems import CONTENT_TYPE, TITLES
from service.api.responses import Added, BulkResults, Captured, Held, ProblemDetails


class Route(NamedTuple):
    """`name` is its method in `Routes`, `status` that of an answer that is a model alone."""

    method: str
    path: str
    name: str
    operation: str
    summary: str
    responses: dict[int, Any]
    status: int = 200
    description: str | None = None


def _problems(*statuses: int) -> dict[int, Any]:
    """What a route answers with these, each with all problems of its status."""
    content = {CONTENT_TYPE: {"model": ProblemDetails}}
    titles = {
        status: [f"{name}: {title}" for name, (of, title) in TITLES.items() if of == status] for status in statuses
    }
    return {status: {"description": "; ".join(titles[status]), "content": content} for status in statuses}


def _json(description: str, model: type | None = None) -> dict[str, Any]:
    content = {} if model is None else {"content": {"application/json": {"model": model}}}
    return {"description": description, **content}


_ALWAYS = (405, 422, 429, 500, 503)
_WRITES = _problems(400, 404, *_ALWAYS, 409, 413, 415, 504)
_READS = {200: _json("The answer"), **_problems(404, *_ALWAYS)}
_HIT = "(header Idempotency-Hit: true)"

_ADDED = {
    201: _json("Recorded: it counts from now on", Added),
    200: _json(f"Replayed: the same change was recorded before {_HIT}", Added),
    **_WRITES,
}
_BULK = {200: _json("A result for each change, in their order", BulkResults), **_problems(400, *_ALWAYS, 413, 415)}
_HELD = {201: _json("The hold was granted, now or before", Held), **_WRITES}
_CAPTURED = {
    201: _json("Captured: it counts from now on", Captured),
    200: _json(f"Replayed: the same amount was captured before {_HIT}", Captured),
    **_WRITES,
}
_RELEASED = {204: _json("Released, now or before"), **_WRITES}

_HOLDS = "/counters/<counter>/holds"
_EITHER = "Exactly one of counter and prefix: the balance of that counter, or names of counters."
ROUTES = (
    Route("POST", "/counters/<counter>/deltas", "add", "add", "Add a change", _ADDED, 201),
    Route("POST", "/deltas", "add_many", "addMany", "Add up to 100 changes", _BULK),
    Route("POST", _HOLDS, "hold", "hold", "Set a part of a limit aside", _HELD, 201),
    Route("POST", f"{_HOLDS}/<id>/capture", "capture", "capture", "Count what a hold was for", _CAPTURED, 201),
    Route("POST", f"{_HOLDS}/<id>/release", "release", "release", "Let a hold go", _RELEASED, 204),
    Route("GET", "/counters", "read_or_list", "readAny", "Read a counter, or list counters", _READS, 200, _EITHER),
    Route("GET", "/history", "history", "historyAny", "List a counter's changes", _READS),
    Route("GET", "/standing", "standing", "standingAny", "What of a limit is left", _READS),
)
