"""The answers that each kind of route may give, for docs/openapi.json."""

from typing import Any

from service.api.models import Added, BulkResults, ProblemDetails
from service.api.problems import CONTENT_TYPE, TITLES


def _problems(*statuses: int) -> dict[int, Any]:
    names = {status: [name for name, (each, _) in TITLES.items() if each == status] for status in statuses}
    return {
        status: {
            "description": "; ".join(f"{name}: {TITLES[name][1]}" for name in names[status]),
            "content": {CONTENT_TYPE: {"model": ProblemDetails}},
        }
        for status in statuses
    }


def _json(description: str, model: type | None = None) -> dict[str, Any]:
    content = {} if model is None else {"content": {"application/json": {"model": model}}}
    return {"description": description, **content}


_ALWAYS = (405, 422, 429, 500, 503)

ADDED = {
    201: _json("Recorded: it counts from now on", Added),
    200: _json("Replayed: the same change was recorded before (header Idempotency-Hit: true)", Added),
    **_problems(400, 404, *_ALWAYS, 409, 413, 415, 504),
}
BULK = {200: _json("A result for each change, in their order", BulkResults), **_problems(400, *_ALWAYS, 413, 415)}
READ = {200: _json("The answer"), **_problems(404, *_ALWAYS)}
