"""Which routes there are, and what each answers: for the router, and for docs/openapi.json.

Rule 1: The model of an answer is that of the method's annotation. Any route may answer any problem, so they are
described once (openapi.py).
"""

from typing import Any, NamedTuple


class Route(NamedTuple):
    """As Powertools' router takes it. status_code: of an answer that is a model alone."""

    method: str
    rule: str
    operation_id: str
    summary: str
    responses: dict[int, Any]
    status_code: int = 200
    description: str | None = None


def _counts(now: str, before: str) -> dict[int, Any]:
    hit = f"Replayed: the same {before} before (header Idempotency-Hit: true)"
    return {201: {"description": f"{now}: it counts from now on"}, 200: {"description": hit}}


_READS = {200: {"description": "The answer"}}
_BULK = {200: {"description": "A result for each change, in their order"}}
_ADDED, _CAPTURED = _counts("Recorded", "change was recorded"), _counts("Captured", "amount was captured")
_HELD = {201: {"description": "The hold was granted, now or before"}}
_RELEASED = {204: {"description": "Released, now or before"}}
_RESERVED = {201: {"description": "All holds were granted, now or before"}}
_SETTLED = {200: {"description": "Settled, now or before"}}
_MOVED = {
    201: {"description": "Moved: it counts from now on"},
    200: {"description": "Replayed: the same transfer was made before (header Idempotency-Hit: true)"},
}
_HOLDS = "/counters/<counter>/holds"
_EITHER = (
    "Exactly one of counter and prefix: the balance of that counter (with at: its value at that instant), or names of "
    "counters."
)
ROUTES = {
    "add": Route("POST", "/counters/<counter>/deltas", "add", "Add a change", _ADDED, 201),
    "add_many": Route("POST", "/deltas", "addMany", "Add up to 100 changes", _BULK),
    "hold": Route("POST", _HOLDS, "hold", "Set a part of a limit aside", _HELD, 201),
    "capture": Route("POST", f"{_HOLDS}/<id>/capture", "capture", "Count what a hold was for", _CAPTURED, 201),
    "release": Route("POST", f"{_HOLDS}/<id>/release", "release", "Let a hold go", _RELEASED, 204),
    "reserve": Route("POST", "/reservations", "reserve", "Set an amount aside in several limits", _RESERVED, 201),
    "settle": Route("POST", "/reservations/settle", "settle", "Count what a reservation was for", _SETTLED),
    "release_all": Route("POST", "/reservations/release", "releaseAll", "Let a reservation go", _RELEASED, 204),
    "transfer": Route("POST", "/transfers", "transfer", "Move an amount to another counter", _MOVED, 201),
    "read_or_list": Route("GET", "/counters", "readAny", "Read a counter, or list counters", _READS, 200, _EITHER),
    "history": Route("GET", "/history", "historyAny", "List a counter's changes", _READS),
    "periods": Route("GET", "/periods", "periods", "List what a counter's periods came to", _READS),
    "series": Route("GET", "/series", "series", "What changed, step by step", _READS),
    "standing": Route("GET", "/standing", "standingAny", "What of a limit is left", _READS),
}
"""By the name of its method in `Routes`."""
