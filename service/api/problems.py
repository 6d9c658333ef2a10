"""Problem details (RFC 9457): what went wrong, whether anything was written, and what the caller does next.

Rule 1: Every answer that is not a success is one of these.
Rule 2: A problem's type is a name in docs/http-api.md and says the same as its status always does.
Rule 3: A write's says whether anything was written; a read's, which `Api` answers, says nothing of it.
Rule 4: No text of a problem holds an amount, an exception that is not ours, or a key, but the canonical spelling of one
that was refused for its spelling.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aws_lambda_powertools.event_handler import Response

from service.writable import Names

CONTENT_TYPE = "application/problem+json"
TYPE = "urn:ledger:problem:"

NOT_WRITTEN = "Nothing was written."
TITLES = {
    "malformed-request": (400, "The request cannot be read"),
    "idempotency-key-missing": (400, "The request has no Idempotency-Key"),
    "no-such-route": (404, "There is nothing at this path"),
    "invalid-counter": (404, "The path holds no counter's name"),
    "no-such-region": (404, "The service does not have this Region"),
    "no-limit": (404, "The counter has no limit"),
    "no-such-hold": (404, "The counter has no such hold"),
    "other-counter": (404, "The path has another counter than the request names"),
    "invalid-cursor": (404, "The cursor is not one of this list"),
    "method-not-allowed": (405, "This path does not have this method"),
    "token-conflict": (409, "The key already stands for another change"),
    "limit-reached": (409, "A limit is in the way"),
    "hold-ended": (409, "The hold was captured, released or is over"),
    "body-too-large": (413, "The body is too large"),
    "not-json": (415, "The body is not JSON"),
    "invalid-request": (422, "A field or a parameter is not acceptable"),
    "invalid-change": (422, "The change is not acceptable"),
    "invalid-key": (422, "The idempotency key is not acceptable"),
    "invalid-time": (422, "The time is not acceptable"),
    "throttled": (429, "The table refuses more requests at the moment"),
    "internal": (500, "The service failed"),
    "misconfigured": (500, "The service is not set up as it must be"),
    "damaged": (500, "An item in the table is damaged or gone"),
    "unavailable": (503, "The table did not answer"),
    "out-of-reach": (503, "Another Region must be asked, and does not answer"),
    "not-yet-replicated": (503, "This Region does not hold everything yet"),
    "outcome-unknown": (504, "The change may or may not have been recorded"),
}
"""Name -> status, title."""

RETRY_AFTER_S = 1
_RETRIED = (429, 503, 504)


class Problem(Exception):
    """A request that is answered with problem details. `members` are further fields of the answer."""

    def __init__(
        self,
        name: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.name = name
        self.status, self.title = TITLES[name]
        self.detail = detail
        self.members = dict(members or {})
        retry = {"Retry-After": str(RETRY_AFTER_S)} if self.status in _RETRIED else {}
        self.headers = retry | dict(headers or {})

    def body(self) -> dict[str, Any]:
        said = {"type": TYPE + self.name, "title": self.title, "status": self.status, "detail": self.detail}
        return said | self.members

    @property
    def all_headers(self) -> dict[str, str]:
        return {"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store", **self.headers}

    def answer(self) -> dict[str, Any]:
        """As API Gateway takes it from a function."""
        body = json.dumps(self.body())
        return {"statusCode": self.status, "headers": self.all_headers, "body": body, "isBase64Encoded": False}

    def response(self) -> Response[str]:
        return Response(self.status, CONTENT_TYPE, json.dumps(self.body()), self.all_headers)


def check_region(region: str | None, regions: Sequence[str]) -> None:
    """Raises Problem for a Region that is none of the service's."""
    if region is not None and region not in regions:
        raise Problem("no-such-region", f"The service has the Regions {', '.join(regions)}. {NOT_WRITTEN}")


def check_name(counter: str, names: Names) -> None:
    """Raises Problem for a counter that nobody may write here."""
    if refused := names.refusal(counter):
        raise invalid([{"loc": ("counter",), "type": "name", "msg": refused.why}])


def no_limit() -> Problem:
    return Problem("no-limit", f"There is nothing to hold, and no standing, where nothing is limited. {NOT_WRITTEN}")


def invalid(found: Iterable[Mapping[str, Any]]) -> Problem:
    """The problem of a request that does not fit its description, with where and what, and no value of it."""
    said = [{"at": "/".join(map(str, each["loc"])), "error": _said(each)} for each in found]
    return Problem("invalid-request", f"See errors. {NOT_WRITTEN}", members={"errors": said})


def _said(error: Mapping[str, Any]) -> str:
    """Pydantic's own words, unless they are those of an exception, which may quote the value."""
    return "not acceptable" if error["type"] in ("value_error", "assertion_error") else str(error["msg"])
