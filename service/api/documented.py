"""What each kind of route may answer, for docs/openapi.json.

Rule 1: A status comes with all problems that have it, so a new problem is in the document of every route that has its
status.
"""

from typing import Any

from service.api.limited_models import Captured, Held
from service.api.models import Added, BulkResults, ProblemDetails
from service.api.problems import CONTENT_TYPE, TITLES


def _problems(*statuses: int) -> dict[int, Any]:
    """What a route answers with these, each with all problems of its status."""
    content = {CONTENT_TYPE: {"model": ProblemDetails}}
    said = {status: [f"{name}: {title}" for name, (of, title) in TITLES.items() if of == status] for status in statuses}
    return {status: {"description": "; ".join(said[status]), "content": content} for status in statuses}


def _json(description: str, model: type | None = None) -> dict[str, Any]:
    content = {} if model is None else {"content": {"application/json": {"model": model}}}
    return {"description": description, **content}


_ALWAYS = (405, 422, 429, 500, 503)
_WRITES = _problems(400, 404, *_ALWAYS, 409, 413, 415, 504)
_HIT = "(header Idempotency-Hit: true)"

ADDED = {
    201: _json("Recorded: it counts from now on", Added),
    200: _json(f"Replayed: the same change was recorded before {_HIT}", Added),
    **_WRITES,
}
BULK = {200: _json("A result for each change, in their order", BulkResults), **_problems(400, *_ALWAYS, 413, 415)}
READ = {200: _json("The answer"), **_problems(404, *_ALWAYS)}
HELD = {201: _json("The hold was granted, now or before", Held), **_WRITES}
CAPTURED = {
    201: _json("Captured: it counts from now on", Captured),
    200: _json(f"Replayed: the same amount was captured before {_HIT}", Captured),
    **_WRITES,
}
RELEASED = {204: _json("Released, now or before"), **_WRITES}
