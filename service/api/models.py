"""What the API takes, as pydantic describes it: bodies, names in paths and queries, the key's
header, how to read.

Rule 1: The models check requests, and docs/openapi.json describes requests by them.
Rule 2: The models convert nothing in a body (a number is no text, 1.0 is no whole number) and
refuse an unknown field, because a misspelled one would be lost.
Rule 3: A limit is the library's own, taken from it.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from aws_lambda_powertools.event_handler.openapi.params import Header, Path, Query
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    WrapValidator,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from ledger.client.message import time_of
from ledger.core.checks import KEY_BYTES_MAX
from ledger.core.errors import InvalidTime
from ledger.core.period import NUMBERED
from ledger.core.period_name import ANCHOR_MAX, UNITS
from ledger.core.ranges import CHANGE_MAX
from ledger.core.tokens import HOLD_MS_MAX
from reader.checks import PAGE_ENTRIES_MAX, SECONDS_MAX
from service.api import cursor as cursors
from service.api.keys import HEADER, TIMED, key_of_header

BULK_MAX, PERIODS_MAX = 100, 100
# Rule 4: the length of a hold is a number of seconds: a duration of ISO 8601 may be in months,
# which have no length.
HOLD_S_MAX = HOLD_MS_MAX // 1_000
EXAMPLE_COUNTER, EXAMPLE_LIMITED, EXAMPLE_KEY, EXAMPLE_ZONE = (
    "stock:85123A",
    "seats:gig",
    "01JGGKGE064BG4X58772SZHBM0",
    "Europe/Paris",
)
STEPS_MAX = 1_000
"""Of one series."""

UNITS_MAX = 4_096
"""Read units that one series, history or list may take: sixteen megabytes."""

IN_PATH = "^[!-$&->@-~]{1,256}$"
"""A name that can stand in a path: as any name, without % and ?."""

HOLD_ID = (
    r"^[0-7][0-9A-HJKMNP-TV-Z]{25}\.[a-z0-9-]{1,32}\.(0|[1-9][0-9]{0,2})"
    r"\.-?([1-9][0-9]{0,17}|10{18})$"
)
"""A hold's id. No hold has any other text, so nothing checks it before the library reads it."""


def _time(value: object) -> datetime:
    try:
        return time_of(value)
    except InvalidTime:
        raise PydanticCustomError(
            "time", "A time is RFC 3339 text with its offset: 2010-12-01T08:26:00Z"
        ) from None


def text(pattern: str, **more: Any) -> WithJsonSchema:
    """The description of a text that other code checks."""
    return WithJsonSchema({"type": "string", "pattern": pattern} | more)


_A_NAME = Field(
    pattern=r"^[!-~]{1,256}$",
    description="1 to 256 printable ASCII characters, no spaces",
    examples=[EXAMPLE_COUNTER],
)
Counter = TypeAliasType("Counter", Annotated[str, _A_NAME])
Time = Annotated[
    datetime,
    BeforeValidator(_time),
    WithJsonSchema(
        {"type": "string", "format": "date-time", "description": "RFC 3339, with its offset"}
    ),
]
_FIRST_ASKED = Field(
    description="when you first asked for the change, the same on every retry, from 1970 to five "
    "minutes ahead; required unless the key is a ULID or a UUIDv7 in its canonical "
    "spelling, which carries its time"
)
FirstAsked = TypeAliasType("FirstAsked", Annotated[Time | None, _FIRST_ASKED])
_IN_REGION = Field(
    pattern="^[a-z0-9-]{1,32}$",
    description=(
        "where you first asked for the change, if that is another Region of the service than this"
    ),
)
InRegion = TypeAliasType("InRegion", Annotated[str | None, _IN_REGION])
WITH_TIME: list[Any] = [
    {"required": ["at"], "properties": {"at": {"type": "string"}}},
    {"properties": {"idempotency_key": {"pattern": TIMED}}},
]
"""The time of a change is in `at`, or in its key."""


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


def example(body: dict[str, Any], **more: Any) -> ConfigDict:
    """What the page to try the API puts into its form: a body that the local API takes."""
    return ConfigDict(json_schema_extra={"examples": [body], **more})


_DELTA: dict[str, Any] = {"counter": EXAMPLE_COUNTER, "change": -6}


class NewDelta(Strict):
    """A change to add."""

    model_config = example(_DELTA)

    counter: Counter
    change: int = Field(
        ge=-CHANGE_MAX,
        le=CHANGE_MAX,
        description="a whole number, written without fraction or exponent",
    )
    at: FirstAsked = None
    region: InRegion = None
    partial: bool = Field(
        False,
        description="whether a part may count: as much as the limit leaves, in all Regions "
        "together; the counter has a limit on that side. A key with partial names another change "
        "than the same key without it",
    )


class BulkDelta(NewDelta):
    """A change to add, with its key."""

    model_config = example(_DELTA | {"idempotency_key": EXAMPLE_KEY}, anyOf=WITH_TIME)

    idempotency_key: str = Field(examples=[EXAMPLE_KEY], min_length=1, max_length=KEY_BYTES_MAX)


class Refused:
    """A delta of a bulk that does not fit its description; the others are added all the same."""

    def __init__(self, errors: list[Any]) -> None:
        self.errors = errors


def _or_refused(value: object, validate: Callable[[object], object]) -> object:
    try:
        return validate(value)
    except ValidationError as error:
        return Refused(error.errors(include_url=False, include_input=False, include_context=False))


class Bulk(Strict):
    """Up to 100 changes to add. Each has a result of its own."""

    deltas: list[Annotated[BulkDelta, WrapValidator(_or_refused)]] = Field(
        min_length=1, max_length=BULK_MAX
    )


ExpiresS = Annotated[
    float,
    Field(
        ge=0.001,
        le=HOLD_S_MAX,
        allow_inf_nan=False,
        description=(
            "seconds from at on, the same on every retry; rounded up by a thousandth at most"
        ),
    ),
]


class NewHold(Strict):
    """A part of a limit to set aside until you capture or release it, or its time is over."""

    model_config = example({"counter": EXAMPLE_LIMITED, "amount": 2, "expires_s": 300})

    counter: Counter
    amount: int = Field(
        ge=-CHANGE_MAX,
        le=CHANGE_MAX,
        description="as the change that would count, not 0: below 0 it takes what is left above "
        "the floor, above 0 below the ceiling",
        json_schema_extra={"not": {"const": 0}},
    )
    expires_s: ExpiresS
    at: FirstAsked = None
    region: InRegion = None


class EndOfHold(Strict):
    """A hold to release."""

    model_config = example({"counter": EXAMPLE_LIMITED})

    counter: Counter


class NewCapture(EndOfHold):
    """A hold whose change has happened."""

    model_config = example({"counter": EXAMPLE_LIMITED, "amount": 2})

    amount: int | None = Field(
        None,
        ge=-CHANGE_MAX,
        le=CHANGE_MAX,
        description="how much of the hold counts, from 0 to its amount; of a hold below 0 with "
        "its sign or without; all of it if left out",
    )


_PATH_NAME = Path(
    description="the counter's name, percent-encoded; without % and ?", examples=[EXAMPLE_COUNTER]
)
InPath = Annotated[str, Field(pattern=IN_PATH), BeforeValidator(unquote), _PATH_NAME]
# Powertools' Example would import 50 models of OpenAPI
_EXAMPLES: dict[str, Any] = {"ulid": {"value": EXAMPLE_KEY}}
_PATH_ID = Path(description="the hold's id, as the answer to its request gave it")
IdInPath = Annotated[str, BeforeValidator(unquote), text(HOLD_ID), _PATH_ID]
Key = Annotated[
    str,
    BeforeValidator(key_of_header),
    text(HEADER, minLength=1),
    Header(
        alias="Idempotency-Key",
        description=(
            "a ULID (upper case) or a UUIDv7 (lower case, with hyphens), or any other "
            "text with at in the body"
        ),
        openapi_examples=_EXAMPLES,
    ),
]
InQuery = Annotated[Counter, Query(description="the counter's name")]
OrInQuery = Annotated[
    Counter | None, Query(alias="counter", description="to read a counter: its name")
]
Prefix = Annotated[
    Annotated[str, Field(pattern="^[!-~]{0,256}$")] | None,
    Query(description="to list counters: the beginning of their names; may be empty"),
]
After = Annotated[
    Annotated[str, text(cursors.AFTER, minLength=1)] | None,
    Query(description="for a list: `next` of the previous page, with the same prefix"),
]
NamesMax = Annotated[
    int, Query(ge=1, le=PAGE_ENTRIES_MAX, alias="limit", description="for a list: names a page")
]
_AGE = Query(
    ge=0,
    le=SECONDS_MAX,
    allow_inf_nan=False,
    description="how old a cached value may be, in seconds",
)
MaxAge = Annotated[float, _AGE]
Consistent = Annotated[
    bool,
    Query(
        description="false: half the price; the value may lag a little, and counts no change twice"
    ),
]
Since = Annotated[Time | None, Query(description="from this time on; RFC 3339")]
At = Annotated[
    Time | None,
    Query(description="to read a counter: the changes before this instant count; RFC 3339"),
]
Until = Annotated[Time | None, Query(description="before this time; RFC 3339")]
Limit = Annotated[int, Query(ge=1, le=PAGE_ENTRIES_MAX, description="entries a page")]


def _unit(value: object) -> object:
    if value in UNITS or (isinstance(value, str) and NUMBERED.fullmatch(value)):
        return value
    names = ", ".join(map(repr, UNITS[:-1]))
    raise PydanticCustomError(
        "unit", f"Input should be {names} or {UNITS[-1]!r}, or so many hours or days: 5h, 30d"
    )


Unit = Annotated[
    str,
    BeforeValidator(_unit),
    text(f"^({'|'.join(UNITS)}|{NUMBERED.pattern})$", examples=["month", "5h", "30d"]),
    Query(alias="every", description="how long a period is; 5h, 30d: that many hours or days"),
]
Anchor = Annotated[
    int, Query(ge=1, le=ANCHOR_MAX, description="for months: the day on which each begins")
]
Begins = Annotated[
    Time | None,
    Query(
        description="for several hours or days: when one of the periods begins; if left out, as "
        "the settings say, else at 1970-01-01T00 by the clock of the zone; RFC 3339"
    ),
]
Last = Annotated[
    int, Query(ge=1, le=PERIODS_MAX, description="how many periods, up to the current one")
]
From = Annotated[
    Time, Query(alias="since", description="the steps cover the time from here on; RFC 3339")
]
To = Annotated[
    Time | None,
    Query(
        alias="until",
        description="the end of that time, which may be in the future; now if left out; RFC 3339",
    ),
]
_EVERY = Query(description="how long a step is; weeks begin on Monday")
Every = Annotated[Literal["hour", "day", "week", "month"], _EVERY]
_ZONE = Query(
    description="the IANA name of the calendar's time zone; UTC if left out",
    examples=[EXAMPLE_ZONE],
)
Zone = Annotated[Annotated[str, Field(min_length=1, max_length=64)] | None, _ZONE]
_OF_HISTORY = Annotated[str, text(cursors.CURSOR, minLength=1)]
Cursor = Annotated[_OF_HISTORY | None, Query(description="`next` of the previous page")]
