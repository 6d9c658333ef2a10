"""What every request passes before it is routed: its size, its body's type, its path and its key.

Rules: the limits of what is read come first; an event leaves here with a text as its body, a path that the router can
match, and the key header if the route needs one; nothing here touches the table.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from ledger.errors import InvalidMessage
from ledger.message import parsed
from service.api.keys import key_of_header
from service.api.paths import PREFIX, routed
from service.api.problems import NOT_WRITTEN, Problem

JSON = "application/json"
BODY_BYTES_MAX = 1_048_576
"""A hundred of the largest deltas, written in the longest way, are smaller."""


def admitted(event: Mapping[str, Any], pages: tuple[str, ...] = ()) -> dict[str, Any]:
    """The event of a request that may be routed (payload format 2.0). `pages` are further paths. Raises Problem."""
    context = event["requestContext"]
    method, path, stage = context["http"]["method"].upper(), event["rawPath"], context.get("stage", "$default")
    if stage != "$default" and path.startswith(f"/{stage}/"):
        path = path.removeprefix(f"/{stage}")
    path = routed(path, method, pages)
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    body = None
    if method == "POST":
        body = _text(event, headers)
        if path.startswith(PREFIX):
            key_of_header(headers.get("idempotency-key"))
        headers["content-type"] = JSON  # Powertools knows this spelling only
    context = {**context, "stage": "$default"}
    routable = {"rawPath": path, "requestContext": context, "headers": headers, "body": body, "isBase64Encoded": False}
    return {**event, **routable}


def json_object(text: str) -> dict[str, Any]:
    """The JSON object of a body. Raises Problem."""
    try:
        said = parsed(text)
    except InvalidMessage as error:
        raise Problem("malformed-request", f"{error.why} {NOT_WRITTEN}") from None
    if not isinstance(said, dict):
        raise Problem("malformed-request", f"The body is JSON, but not an object. {NOT_WRITTEN}")
    return said


def _text(event: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    media_type = headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if media_type != JSON:
        raise Problem("not-json", f"Send Content-Type: {JSON}. {NOT_WRITTEN}")
    body = event.get("body") or ""
    if len(body) > 2 * BODY_BYTES_MAX:
        raise _too_large()
    try:
        data = base64.b64decode(body, validate=True) if event.get("isBase64Encoded") else body.encode()
        text = data.decode()
    except ValueError:  # not base64, not UTF-8, a lone surrogate
        raise Problem("malformed-request", f"The body is not UTF-8. {NOT_WRITTEN}") from None
    if len(data) > BODY_BYTES_MAX:
        raise _too_large()
    if not text.strip():
        raise Problem("malformed-request", f"The request has no body. {NOT_WRITTEN}")
    return str(text)


def _too_large() -> Problem:
    return Problem("body-too-large", f"A body has at most {BODY_BYTES_MAX:,} bytes. {NOT_WRITTEN}")
