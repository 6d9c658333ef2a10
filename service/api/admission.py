"""What every request passes before it is routed: its path and method, its query, its body's size and type, its key.

Rule 1: The limits of what is read come first.
Rule 2: An event leaves here with a text as its body, a path that the router can match, the query's parameters, each
once, read from the query as it was sent, and a key header, which is empty if there was none.
Rule 3: HEAD is read as GET.
Rule 4: Nothing here touches the table.
"""

import base64
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from ledger.errors import InvalidMessage
from ledger.message import parsed
from service.api.paths import routed
from service.api.problems import Problem, invalid

JSON = "application/json"
BODY_BYTES_MAX = 1_048_576
"""A hundred of the largest deltas, written in the longest way, are smaller."""


def admitted(event: Mapping[str, Any], pages: tuple[str, ...] = ()) -> dict[str, Any]:
    """The event of a request that may be routed (payload format 2.0). `pages` are further paths. Raises Problem."""
    context = event["requestContext"]
    path, allowed = routed(_path(event), pages)
    method = _checked(context["http"]["method"].upper(), allowed)
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    body = None
    if method == "POST":
        body = _text(event, headers)
        headers["content-type"] = JSON  # Powertools knows this spelling only
        headers["idempotency-key"] = headers.get("idempotency-key") or ""
    context = {**context, "stage": "$default", "http": {**context["http"], "method": method}}
    routable = {"rawPath": path, "requestContext": context, "headers": headers, "body": body, "isBase64Encoded": False}
    return {**event, **routable, "queryStringParameters": _query(event.get("rawQueryString") or "")}


def methods_of(event: Mapping[str, Any], pages: tuple[str, ...] = ()) -> str:
    """The methods that the path of an event has, as the header Allow lists them. Raises Problem."""
    return _allow(routed(_path(event), pages)[1])


def json_object(text: str) -> dict[str, Any]:
    """The JSON object of a body. Raises Problem."""
    try:
        said = parsed(text)
    except InvalidMessage as error:
        raise Problem("malformed-request", error.why) from None
    if not isinstance(said, dict):
        raise Problem("malformed-request", "The body is JSON, but not an object.")
    return said


def _path(event: Mapping[str, Any]) -> str:
    path, stage = str(event["rawPath"]), event["requestContext"].get("stage", "$default")
    return path.removeprefix(f"/{stage}") if stage != "$default" and path.startswith(f"/{stage}/") else path


def _checked(method: str, allowed: str) -> str:
    """The method to route: GET is asked for HEAD too."""
    if method == "HEAD" and allowed == "GET":
        return "GET"
    if method != allowed:
        detail = f"This path has the methods {_allow(allowed)}."
        raise Problem("method-not-allowed", detail, headers={"Allow": _allow(allowed)})
    return method


def _allow(allowed: str) -> str:
    return "GET, HEAD, OPTIONS" if allowed == "GET" else f"{allowed}, OPTIONS"


def _query(query: str) -> dict[str, str]:
    """The parameters; API Gateway would join one that is given twice by a comma, which may be a part of a name."""
    pairs = parse_qsl(query, keep_blank_values=True)
    twice = [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]
    if twice:
        raise invalid({"loc": ("query", name), "type": "twice", "msg": "Given twice"} for name in twice)
    return dict(pairs)


def _text(event: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    media_type = headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if media_type != JSON:
        raise Problem("not-json", f"Send Content-Type: {JSON}.")
    body = event.get("body") or ""
    if len(body) > 2 * BODY_BYTES_MAX:
        raise _too_large()
    try:
        data = base64.b64decode(body, validate=True) if event.get("isBase64Encoded") else body.encode()
        text = data.decode()
    except ValueError:  # not base64, not UTF-8, a lone surrogate
        raise Problem("malformed-request", "The body is not UTF-8.") from None
    if len(data) > BODY_BYTES_MAX:
        raise _too_large()
    if not text.strip():
        raise Problem("malformed-request", "The request has no body.")
    return str(text)


def _too_large() -> Problem:
    return Problem("body-too-large", f"A body has at most {BODY_BYTES_MAX:,} bytes.")
