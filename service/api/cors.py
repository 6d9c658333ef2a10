"""Which pages of other origins a browser lets call the API: none, unless they are named.

Rule 1: In AWS, API Gateway answers for CORS itself (`corsOrigins` of serverless.yml) and drops what the function says.
Rule 2: This is for the API on this computer. Every answer gets the headers, a problem too, or a page could not read it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from aws_lambda_powertools.event_handler import CORSConfig

METHODS = "GET,HEAD,POST"
ASKED = ["Idempotency-Key"]
"""Headers of requests, beside Powertools' own (Authorization, Content-Type, X-Amz-*)."""
ANSWERED = ["Idempotency-Hit", "Retry-After", "Allow"]
MAX_AGE_S = 3_600

Api = Callable[[dict[str, Any]], dict[str, Any]]


def allowing(origins: Sequence[str], api: Api) -> Api:
    """The API for pages of these origins too ("https://shop.example"; "*" for all)."""
    if not origins:
        return api
    first, *others = origins
    cors = CORSConfig(first, others, allow_headers=ASKED, expose_headers=ANSWERED, max_age=MAX_AGE_S)

    def answered(event: dict[str, Any]) -> dict[str, Any]:
        answer = api(event)
        origin = next((value for name, value in event["headers"].items() if name.lower() == "origin"), None)
        if origin is not None:
            headers = cors.to_dict(cors.allowed_origin(origin))
            methods = {"Access-Control-Allow-Methods": METHODS} if headers else {}
            answer["headers"] |= headers | methods | {"Vary": "Origin"}
        return answer

    return answered
