"""Which routes there are, and what each may answer: for the router, and for docs/openapi.json.

Rule 1: A status comes with all problems that have it, so a new problem is in the document of every route that has its
status.
"""

from typing import Any, NamedTuple

from service.api.problems import CONTENT_TYPE, TITLES
from service.api.responses import Added, BulkResults, Captured, Held, ProblemDetails


class Route(NamedTuple):
    """As Powertools' router takes it. status_code: of an answer that is a model alone."""

    method: str
    rule: str
    operation_id: str
    summary: str
    responses: dict[int, Any]
    status_code: int = 200
    description: str | None = None


def _json(description: str, model: type | None = None) -> dict[str, Any]:
    content = {} if model is None else {"content": {"application/json": {"model": model}}}
    return {"description": description, **content}


def _problems(*statuses: int) -> dict[int, Any]:
    """What a route answers with these, each with all problems of its status."""
    content = {CONTENT_TYPE: {"model": ProblemDetails}}
    titles = {at: [f"{name}: {title}" for name, (of, title) in TITLES.items() if of == at] for at in statuses}
    return {status: {"description": "; ".join(titles[status]), "content": content} for status in statuses}


_ALWAYS = (405, 422, 429, 500, 503)
_WRITES = _problems(400, 404, *_ALWAYS, 409, 413, 415, 504)
_READS = {200: _json("The answer"), **_problems(404, *_ALWAYS)}
_BULK = {200: _json("A result for each change, in their order", BulkResults), **_problems(400, *_ALWAYS, 413, 415)}
_HELD = {201: _json("The hold was granted, now or before", Held), **_WRITES}
_RELEASED = {204: _json("Released, now or before"), **_WRITES}


def _counted(now: str, before: str, model: type) -> dict[int, Any]:
    hit = f"Replayed: the same {before} before (header Idempotency-Hit: true)"
    return {201: _json(f"{now}: it counts from now on", model), 200: _json(hit, model), **_WRITES}


_ADDED = _counted("Recorded", "change was recorded", Added)
_CAPTURED = _counted("Captured", "amount was captured", Captured)
_HOLDS = "/counters/<counter>/holds"
_EITHER = "Exactly one of counter and prefix: the balance of that counter, or names of counters."
ROUTES = {
    "add": Route("POST", "/counters/<counter>/deltas", "add", "Add a change", _ADDED, 201),
    "add_many": Route("POST", "/deltas", "addMany", "Add up to 100 changes", _BULK),
    "hold": Route("POST", _HOLDS, "hold", "Set a part of a limit aside", _HELD, 201),
    "capture": Route("POST", f"{_HOLDS}/<id>/capture", "capture", "Count what a hold was for", _CAPTURED, 201),
    "release": Route("POST", f"{_HOLDS}/<id>/release", "release", "Let a hold go", _RELEASED, 204),
    "read_or_list": Route("GET", "/counters", "readAny", "Read a counter, or list counters", _READS, 200, _EITHER),
    "history": Route("GET", "/history", "historyAny", "List a counter's changes", _READS),
    "standing": Route("GET", "/standing", "standingAny", "What of a limit is left", _READS),
}
"""By the name of its method in `Routes`."""
