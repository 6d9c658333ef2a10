"""What routes take beside a body: names in paths and queries, the key's header, and how to read.

Rule 1: A limit is the library's own, taken from it.
Rule 2: Of `GET /counters`, exactly one of `counter` and `prefix` says whether a balance or a list is meant; what
belongs to the other one is refused with it.
"""

from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler.openapi.models import Example
from aws_lambda_powertools.event_handler.openapi.params import Header, Path, Query
from pydantic import BeforeValidator, Field, WithJsonSchema

from reader.calls import PAGE_ENTRIES_MAX, SECONDS_MAX
from service.api import cursor as cursors
from service.api import models
from service.api.keys import HEADER, key_of_header
from service.api.paths import IN_PATH
from service.api.problems import invalid

HOLD_ID = r"^[0-7][0-9A-HJKMNP-TV-Z]{25}\.[a-z0-9-]{1,32}\.(0|[1-9][0-9]{0,2})\.-?[1-9][0-9]{0,17}$"
"""How a hold's id looks. Of any other text there is no hold, so nothing checks it before the library reads it."""


def _text(pattern: str, **more: Any) -> WithJsonSchema:
    """How a text is described that is checked elsewhere."""
    return WithJsonSchema({"type": "string", "pattern": pattern} | more)


InPath = Annotated[
    str,
    Field(pattern=IN_PATH),
    BeforeValidator(unquote),
    Path(description="the counter's name, percent-encoded; without % and ?", examples=[models.EXAMPLE_COUNTER]),
]
IdInPath = Annotated[
    str,
    BeforeValidator(unquote),
    _text(HOLD_ID),
    Path(description="the hold's id, as the answer to its request gave it"),
]
InQuery = Annotated[models.Counter, Query(description="the counter's name")]
Key = Annotated[
    str,
    BeforeValidator(key_of_header),
    _text(HEADER, minLength=1),
    Header(
        alias="Idempotency-Key",
        description="a ULID (upper case) or a UUIDv7 (lower case, with hyphens), or any other text with at in the body",
        openapi_examples={"ulid": Example(value=models.EXAMPLE_KEY)},
    ),
]
OrInQuery = Annotated[models.Counter | None, Query(alias="counter", description="the counter's name, to read it")]
Prefix = Annotated[
    Annotated[str, Field(pattern="^[!-~]{0,256}$")] | None,
    Query(description="to list counters: what their names begin with; may be empty"),
]
After = Annotated[
    Annotated[str, _text(cursors.AFTER, minLength=1)] | None,
    Query(description="of a list: next of the page before, with the same prefix"),
]
NamesMax = Annotated[int, Query(ge=1, le=PAGE_ENTRIES_MAX, alias="limit", description="of a list: names of a page")]
MaxAge = Annotated[
    float, Query(ge=0, le=SECONDS_MAX, allow_inf_nan=False, description="seconds a cached value may have")
]
Consistent = Annotated[bool, Query(description="false: half the price, may lag a little, still a true sum")]
Since = Annotated[models.Time | None, Query(description="included; RFC 3339")]
Until = Annotated[models.Time | None, Query(description="excluded; RFC 3339")]
Limit = Annotated[int, Query(ge=1, le=PAGE_ENTRIES_MAX, description="entries of a page")]
Cursor = Annotated[
    Annotated[str, _text(cursors.CURSOR, minLength=1)] | None,
    Query(description="next of the page before"),
]

_OF_A_READ, _OF_A_LIST = ("max_age", "consistent"), ("after", "limit")


def only_known(*pages: str) -> Callable[[Any, Callable[[Any], Any]], Any]:
    """Refuses parameters that the route does not have, and those that contradict each other; `pages` take any."""

    def middleware(app: Any, following: Callable[[Any], Any]) -> Any:
        route, given = app.context["_route"], app.current_event.query_string_parameters.keys()
        unknown = sorted(given - {field.alias for field in route.dependant.query_params})
        if unknown and route.path not in pages:
            raise invalid({"loc": ("query", name), "type": "unknown", "msg": "Unknown parameter"} for name in unknown)
        if route.path == "/counters":
            _check_which(given)
        return following(app)

    return middleware


def _check_which(given: Any) -> None:
    """Raises Problem unless the query is that of a balance or that of a list."""
    if ("counter" in given) == ("prefix" in given):
        reason = "Give counter, to read one, or prefix (it may be empty), to list them: exactly one of them"
        raise invalid([{"loc": ("query",), "type": "which", "msg": reason}])
    one, others = ("counter", _OF_A_LIST) if "counter" in given else ("prefix", _OF_A_READ)
    if wrong := [name for name in others if name in given]:
        raise invalid({"loc": ("query", name), "type": "which", "msg": f"Does not go with {one}"} for name in wrong)
