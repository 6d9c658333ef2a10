"""What routes take beside a body: names in paths and queries, the key's header, and how to read.

Rule 1: A limit is the library's own, taken from it.
"""

from typing import Annotated
from urllib.parse import unquote

from aws_lambda_powertools.event_handler.openapi.models import Example
from aws_lambda_powertools.event_handler.openapi.params import Header, Path, Query
from pydantic import BeforeValidator, Field, WithJsonSchema

from reader.calls import PAGE_ENTRIES_MAX, SECONDS_MAX
from service.api import cursor as cursors
from service.api import models
from service.api.keys import HEADER
from service.api.paths import IN_PATH

HOLD_ID = r"^[0-7][0-9A-HJKMNP-TV-Z]{25}\.[a-z0-9-]{1,32}\.(0|[1-9][0-9]{0,2})\.-?[1-9][0-9]{0,17}$"
"""How a hold's id looks. Of any other text there is no hold, so nothing checks it before the library reads it."""

InPath = Annotated[
    str,
    Field(pattern=IN_PATH),
    BeforeValidator(unquote),
    Path(description="the counter's name, percent-encoded; without % and ?", examples=[models.EXAMPLE_COUNTER]),
]
IdInPath = Annotated[
    str,
    BeforeValidator(unquote),
    WithJsonSchema({"type": "string", "pattern": HOLD_ID}),
    Path(description="the hold's id, as the answer to its request gave it"),
]
Again = Annotated[
    models.Counter,
    Query(alias="counter", description="the name in the path again: a gateway may have changed it there"),
]
InQuery = Annotated[models.Counter, Query(description="the counter's name")]
Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        pattern=HEADER,
        min_length=1,
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
    Annotated[str, WithJsonSchema({"type": "string", "pattern": cursors.AFTER, "minLength": 1})] | None,
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
    Annotated[str, WithJsonSchema({"type": "string", "pattern": cursors.CURSOR, "minLength": 1})] | None,
    Query(description="next of the page before"),
]
