"""Which pages of other origins a browser lets call the API: none, unless they are named.

Rule 1: In AWS, API Gateway answers for CORS itself (`corsOrigins` of serverless.yml) and drops what the function says.
Rule 2: This is for the API on this computer. Every answer gets the headers, a problem too, or a page could not read it.
"""

from collections.abc import Mapping, Sequence

from aws_lambda_powertools.event_handler import CORSConfig

METHODS = "GET,HEAD,POST"
ASKED = ["Idempotency-Key"]
"""Headers of requests, beside Powertools' own (Authorization, Content-Type, X-Amz-*)."""
ANSWERED = ["Idempotency-Hit", "Retry-After", "Allow"]
MAX_AGE_S = 3_600


def of(origins: Sequence[str]) -> CORSConfig | None:
    """The configuration for these origins ("https://shop.example"; "*" for all), or None without any."""
    if not origins:
        return None
    first, *others = origins
    return CORSConfig(first, others, allow_headers=ASKED, expose_headers=ANSWERED, max_age=MAX_AGE_S)


def headers(cors: CORSConfig | None, asked: Mapping[str, str]) -> dict[str, str]:
    """What an answer to a request with these headers says to a browser."""
    origin = next((value for name, value in asked.items() if name.lower() == "origin"), None)
    if cors is None or origin is None:
        return {}
    said = cors.to_dict(cors.allowed_origin(origin))
    return said | {"Access-Control-Allow-Methods": METHODS, "Vary": "Origin"} if said else {"Vary": "Origin"}
