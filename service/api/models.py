"""The bodies that the API takes, as pydantic models: they check requests and are what docs/openapi.json describes.

Rule 1: Nothing is converted (a number is no text, 1.0 is no whole number) and an unknown field is refused, because a
misspelled one would be lost.
Rule 2: A limit is the library's own, taken from it.
Rule 3: How long a hold holds is a number of seconds: a duration of ISO 8601 may be in months, which have no length.
"""

from datetime import datetime
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from ledger.checks import KEY_BYTES_MAX
from ledger.errors import InvalidTime
from ledger.message import time_of
from ledger.ranges import CHANGE_MAX
from ledger.tokens import HOLD_MS_MAX
from service.api.keys import TIMED

BULK_MAX = 100
HOLD_S_MAX = HOLD_MS_MAX // 1_000
EXAMPLE_COUNTER, EXAMPLE_KEY = "stock:85123A", "01JGGKGE064BG4X58772SZHBM0"


def _time(value: object) -> datetime:
    try:
        return time_of(value)
    except InvalidTime:
        raise PydanticCustomError("time", "A time is RFC 3339 text with its offset: 2010-12-01T08:26:00Z") from None


Counter = Annotated[
    str,
    Field(
        pattern=r"^[!-~]{1,256}$",
        description="1 to 256 printable ASCII characters, no spaces",
        examples=[EXAMPLE_COUNTER],
    ),
]
Time = Annotated[
    datetime,
    BeforeValidator(_time),
    WithJsonSchema({"type": "string", "format": "date-time", "description": "RFC 3339, with its offset"}),
]
FirstAsked = Annotated[
    Time | None,
    Field(
        description="when the change was first asked for, the same on every retry, from 1970 to five minutes ahead; "
        "required unless the key is a ULID or a UUIDv7 in its canonical spelling, which carries its time",
    ),
]
InRegion = Annotated[
    str | None,
    Field(
        pattern="^[a-z0-9-]{1,32}$",
        description="where the change was first asked for, when that is another Region of the service than this",
    ),
]
WITH_TIME: list[JsonValue] = [
    {"required": ["at"], "properties": {"at": {"type": "string"}}},
    {"properties": {"idempotency_key": {"pattern": TIMED}}},
]
"""Where the time of a change is: in `at`, or in its key."""


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class NewDelta(Strict):
    """A change to add."""

    counter: Counter
    change: int = Field(
        ge=-CHANGE_MAX, le=CHANGE_MAX, description="a whole number, written without fraction or exponent"
    )
    at: FirstAsked = None
    region: InRegion = None


class BulkDelta(NewDelta):
    """A change to add, with its key."""

    model_config = ConfigDict(json_schema_extra={"anyOf": WITH_TIME})

    idempotency_key: str = Field(examples=[EXAMPLE_KEY], min_length=1, max_length=KEY_BYTES_MAX)


class Refused:
    """A delta of a bulk that does not fit its description; the others are added all the same."""

    def __init__(self, errors: list[Any]) -> None:
        self.errors = errors


def _or_refused(value: object, validate: ValidatorFunctionWrapHandler) -> object:
    try:
        return validate(value)
    except ValidationError as error:
        return Refused(error.errors(include_url=False, include_input=False, include_context=False))


class Bulk(Strict):
    """Up to 100 changes to add. Each has a result of its own."""

    deltas: list[Annotated[BulkDelta, WrapValidator(_or_refused)]] = Field(min_length=1, max_length=BULK_MAX)


class NewHold(Strict):
    """A part of a limit to set aside, until it is captured or released, or is over."""

    counter: Counter
    amount: int = Field(
        ge=-CHANGE_MAX,
        le=CHANGE_MAX,
        description="as the change that would count, not 0: below 0 it takes what is left above the floor, above 0 "
        "below the ceiling",
        json_schema_extra={"not": {"const": 0}},
    )
    expires_s: float = Field(
        ge=0.001,
        le=HOLD_S_MAX,
        allow_inf_nan=False,
        description="seconds from at on, the same on every retry; rounded up by a thousandth at most",
    )
    at: FirstAsked = None
    region: InRegion = None


class EndOfHold(Strict):
    """A hold to let go."""

    counter: Counter


class NewCapture(EndOfHold):
    """A hold whose change has happened."""

    amount: int | None = Field(
        None,
        ge=-CHANGE_MAX,
        le=CHANGE_MAX,
        description="how much of it counts, from 0 to the amount that is held, of a hold below 0 with its sign or "
        "without; all of it if left out",
    )
