"""What every request passes before the router: the checks of its path, method, query, body's size
and type, and key.

Rule 1: The bounds of a request come first. Nothing here touches the table. HEAD counts as GET. The
stage is API Gateway's `$default` (infra/api.yml), which is in no path.
Rule 2: A path alone never says for certain which counter is meant. API Gateway's HTTP API decodes
it twice and cuts it between, at the first `?`, so the paths of `a`, `a?b` and `%61` arrive alike;
another gateway resolves dots or merges slashes. So a read names its counter in the query, and a
write with a name in its path names it again in its body: no gateway decodes those twice. That name
decides, and routes.py refuses a path that arrives with another one.
Rule 3: The last part of a path decides the route. This module makes each name one safe part,
because Powertools' router matches whole parts.
Source of what API Gateway does: requests to it, recorded in https://github.com/hotsock/voker
(ingress-paths.json).
"""

import base64
import re
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, quote

from ledger.client.message import parsed
from ledger.core.errors import InvalidMessage
from service.api.documented import ROUTES
from service.api.models import IN_PATH
from service.api.problems import ELSEWHERE, Problem, invalid, no_such_route

JSON = "application/json"
BODY_BYTES_MAX = 1_048_576
"""A hundred of the largest deltas, written in the longest way, are smaller."""

_NAMED = "<(counter|id)>"
_PATTERNS = [
    (route, re.compile(re.sub(_NAMED, r"(?P<\1>.*)", route.rule), re.DOTALL))
    for route in ROUTES.values()
]


def routed(event: Mapping[str, Any], pages: tuple[str, ...] = ()) -> tuple[str, str]:
    """The path for the router, with each name as one safe part; its method.

    pages: further paths. Raises Problem.
    """
    path = str(event["rawPath"])
    if path in pages:
        return path, "GET"
    for route, pattern in _PATTERNS:
        if match := pattern.fullmatch(path):
            if not re.fullmatch(IN_PATH, match.groupdict().get("counter", "none")):
                name = (
                    "In a path, a counter's name has 1 to 256 printable ASCII characters "
                    "without spaces, % and ?. "
                )
                raise Problem("invalid-counter", name + ELSEWHERE)
            return re.sub(_NAMED, partial(_quoted, match), route.rule), route.method
    raise no_such_route()


def _quoted(match: re.Match[str], part: re.Match[str]) -> str:
    return quote(match[part[1]], safe="")


def allow(allowed: str) -> str:
    """The methods of a path, as the header Allow lists them."""
    return "GET, HEAD, OPTIONS" if allowed == "GET" else f"{allowed}, OPTIONS"


def admitted(event: Mapping[str, Any], path: str, allowed: str) -> dict[str, Any]:
    """The event of a request, ready for the router (payload format 2.0). Raises Problem."""
    context = event["requestContext"]
    method = context["http"]["method"].upper()
    if method != allowed and (method, allowed) != ("HEAD", "GET"):
        methods = allow(allowed)
        raise Problem(
            "method-not-allowed", f"This path takes {methods}.", headers={"Allow": methods}
        )
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    body = None
    if allowed == "POST":
        body = _text(event, headers)
        headers["content-type"] = JSON  # Powertools knows this spelling only
        headers["idempotency-key"] = headers.get("idempotency-key") or ""
    context = {**context, "http": {**context["http"], "method": allowed}}
    routable = {
        "rawPath": path,
        "requestContext": context,
        "headers": headers,
        "body": body,
        "isBase64Encoded": False,
    }
    return {**event, **routable, "queryStringParameters": _query(event.get("rawQueryString") or "")}


def json_object(text: str) -> dict[str, Any]:
    """The JSON object of a body. Raises Problem."""
    try:
        said = parsed(text)
    except InvalidMessage as error:
        raise Problem("malformed-request", error.why) from None
    if not isinstance(said, dict):
        raise Problem("malformed-request", "The body is JSON, but no object.")
    return said


def _query(query: str) -> dict[str, str]:
    # Rule 4: this module reads the query as the caller sent it: API Gateway would join a repeated
    # parameter by a comma, which may be a part of a name.
    pairs = parse_qsl(query, keep_blank_values=True)
    twice = [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]
    if twice:
        raise invalid(
            {"loc": ("query", name), "type": "twice", "msg": "Given twice"} for name in twice
        )
    return dict(pairs)


def _text(event: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    too_large = Problem("body-too-large", f"A body has at most {BODY_BYTES_MAX:,} bytes.")
    body = event.get("body") or ""
    if len(body) > 2 * BODY_BYTES_MAX:
        raise too_large
    try:
        data = (
            base64.b64decode(body, validate=True) if event.get("isBase64Encoded") else body.encode()
        )
        if len(data) > BODY_BYTES_MAX:
            raise too_large
        # A body without a type is refused, too: browsers send it for any page, without asking the
        # server before.
        media_type = headers.get("content-type", "" if data else JSON)
        if media_type.partition(";")[0].strip().lower() != JSON:
            raise Problem("not-json", f"Send Content-Type: {JSON}.")
        text = data.decode()
    except ValueError:  # not base64, not UTF-8, a lone surrogate
        raise Problem("malformed-request", "The body is not UTF-8.") from None
    if not text.strip():
        raise Problem("malformed-request", "The request has no body.")
    return str(text)
