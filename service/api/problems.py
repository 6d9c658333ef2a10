"""Problem details (RFC 9457): what went wrong, whether anything was written, and what the caller does next.

Rule 1: Every answer that is not a success is one of these.
Rule 2: A problem's type is a name in docs/http-api.md and says the same as its status always does.
Rule 3: No text of a problem holds an amount, an exception that is not ours, or a key, but the canonical spelling of one
that was refused for its spelling.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from aws_lambda_powertools.event_handler import Response

from ledger import errors
from ledger.errors import LedgerError

CONTENT_TYPE = "application/problem+json"
TYPE = "urn:ledger:problem:"

NOT_WRITTEN = "Nothing was written."
TITLES = {
    "malformed-request": (400, "The request cannot be read"),
    "idempotency-key-missing": (400, "The request has no Idempotency-Key"),
    "no-such-route": (404, "There is nothing at this path"),
    "invalid-counter": (404, "The path holds no counter's name"),
    "no-such-region": (404, "The service does not have this Region"),
    "other-counter": (404, "The path has another counter than the request names"),
    "invalid-cursor": (404, "The cursor is not one of this history"),
    "method-not-allowed": (405, "This path does not have this method"),
    "token-conflict": (409, "The key already stands for another change"),
    "body-too-large": (413, "The body is too large"),
    "not-json": (415, "The body is not JSON"),
    "invalid-request": (422, "A field or a parameter is not acceptable"),
    "invalid-change": (422, "The change is not acceptable"),
    "invalid-key": (422, "The idempotency key is not acceptable"),
    "invalid-time": (422, "The time is not acceptable"),
    "throttled": (429, "The table refuses more requests at the moment"),
    "internal": (500, "The service failed"),
    "misconfigured": (500, "The service is not set up as it must be"),
    "damaged": (500, "An item in the table is damaged"),
    "unavailable": (503, "The table did not answer"),
    "not-yet-replicated": (503, "This Region does not hold everything yet"),
    "outcome-unknown": (504, "The change may or may not have been recorded"),
}
"""Name -> status, title."""

RETRY_AFTER_S = 1
_RETRIED = (429, 503, 504)

_NAMES: tuple[tuple[type[LedgerError], str, str], ...] = (
    (errors.InvalidChange, "invalid-change", "A change is a whole number of magnitude at most 10^18."),
    (errors.InvalidKey, "invalid-key", "An idempotency key is text of 1 to 1,024 bytes of UTF-8."),
    (errors.InvalidTime, "invalid-time", "A time has an offset and is from 1970 to five minutes ahead."),
    (errors.InvalidInput, "invalid-request", "An argument is not acceptable."),
    (
        errors.TokenConflict,
        "token-conflict",
        "This counter, key and time already stand for another change, which counts. A new change needs a new key.",
    ),
    (errors.Throttled, "throttled", "Repeat the request, slower."),
    (
        errors.OutcomeUnknown,
        "outcome-unknown",
        "Repeat the request with the same idempotency key, the same time and the same region: it counts once.",
    ),
    (errors.Unavailable, "unavailable", "Repeat the request."),
    (errors.TransactionConflict, "unavailable", "Repeat the request."),
    (errors.ReadTooSlow, "unavailable", "The compactor must run; then repeat the request."),
    (errors.NotYetReplicated, "not-yet-replicated", "Repeat the request later, or in the counter's home Region."),
    (errors.DamagedItem, "damaged", "The operator must look at the service's log."),
)


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


def problem_of(error: LedgerError) -> Problem:
    """The problem that an error of the library is. Only an unknown outcome may have written something."""
    members: dict[str, Any] = {}
    if error.delta is not None:
        members = {"region": error.delta.lane.region, "token": error.delta.token}
    for kind, name, detail in _NAMES:
        if isinstance(error, kind):
            written = "" if isinstance(error, errors.OutcomeUnknown) else f" {NOT_WRITTEN}"
            return Problem(name, detail + written, members=members)
    return Problem("misconfigured", f"The operator must look at the service's log. {NOT_WRITTEN}", members=members)


def invalid(found: Iterable[Mapping[str, Any]]) -> Problem:
    """The problem of a request that does not fit its description, with where and what, and no value of it."""
    said = [{"at": "/".join(map(str, each["loc"])), "error": _said(each)} for each in found]
    return Problem("invalid-request", f"See errors. {NOT_WRITTEN}", members={"errors": said})


def _said(error: Mapping[str, Any]) -> str:
    """Pydantic's own words, unless they are those of an exception, which may quote the value."""
    return "not acceptable" if error["type"] in ("value_error", "assertion_error") else str(error["msg"])
