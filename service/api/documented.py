"""Which routes there are, and what each may answer: for the router, and for docs/openapi.json.

Rule 1: A status comes with all problems that have it, so a new problem is in the document of every route that has its
status. The model of any other answer is that of the method's annotation.
"""

from typing import Any, NamedTuple

from service.api.problems import CONTENT_TYPE, TITLES
from service.api.responses import ProblemDetails

OF_ANY_ROUTE = (405, 422, 429, 500, 503)
"""The statuses of the problems that every route may answer."""


class Route(NamedTuple):
    """As Powertools' router takes it. status_code: of an answer that is a model alone."""

    method: str
    rule: str
    operation_id: str
    summary: str
    responses: dict[int, Any]
    status_code: int = 200
    description: str | None = None


def _answers(described: dict[int, str], *statuses: int) -> dict[int, Any]:
    """These, and the problems of these statuses, and of those that every route may answer."""
    content = {CONTENT_TYPE: {"model": ProblemDetails}}
    found: dict[int, Any] = {status: {"description": text} for status, text in described.items()}
    for status in (*statuses, *OF_ANY_ROUTE):
        titles = "; ".join(f"{name}: {title}" for name, (of, title) in TITLES.items() if of == status)
        found[status] = {"description": titles, "content": content}
    return found


def _writes(described: dict[int, str]) -> dict[int, Any]:
    return _answers(described, 400, 404, 409, 413, 415, 504)


def _counts(now: str, before: str) -> dict[int, Any]:
    hit = f"Replayed: the same {before} before (header Idempotency-Hit: true)"
    return _writes({201: f"{now}: it counts from now on", 200: hit})


_READS = _answers({200: "The answer"}, 404)
_BULK = _answers({200: "A result for each change, in their order"}, 400, 413, 415)
_ADDED, _CAPTURED = _counts("Recorded", "change was recorded"), _counts("Captured", "amount was captured")
_HELD, _RELEASED = _writes({201: "The hold was granted, now or before"}), _writes({204: "Released, now or before"})
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
