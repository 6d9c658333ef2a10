"""What the API takes and gives, as pydantic models: they check requests and are what docs/openapi.json describes.

Rule 1: Nothing is converted (a number is no text, 1.0 is no whole number) and an unknown field is refused, because a
misspelled one would be lost.
Rule 2: A limit is the library's own, taken from it.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

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
from service.api.keys import TIMED

BULK_MAX = 100
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
Asked = Annotated[
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
    at: Asked = None
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


class Added(BaseModel):
    """A change counts, exactly once, from now on."""

    outcome: Literal["recorded", "replayed", "accepted"]
    counter: str
    token: str = Field(description="the ULID that names the delta")
    region: str = Field(
        description="the Region of the delta's lane; to be named when another Region repeats the request"
    )
    at: str


class ProblemDetails(BaseModel):
    """RFC 9457."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="urn:ledger:problem:<name>, see docs/http-api.md")
    title: str
    status: int
    detail: str


class BulkResult(BaseModel):
    """What became of one change: `added` or `problem`."""

    status: int = Field(description="201, 200 (replayed) or that of the problem")
    added: Added | None = None
    problem: ProblemDetails | None = None


class BulkResults(BaseModel):
    """A result for each change, in their order."""

    results: list[BulkResult]


class CounterBalance(BaseModel):
    """A counter at an instant: the sum of a real set of changes."""

    counter: str
    value: int = Field(description="exact; it may be larger than what a double holds")
    count: int = Field(description="how many changes it sums")
    as_of: str
    pending: int = Field(description="how many of the changes are still in the tail")
    by_region: dict[str, int]
    cached: bool
    closed: bool = Field(description="of a counter with a limit: whether the value is certainly within it")


class CounterNames(BaseModel):
    """Names of counters, each once, in no order of theirs. `next` is the cursor of the next page, or null.

    A page may have fewer names than its limit, or none, and yet a next one.
    """

    counters: list[str]
    next: str | None


class HistoryEntry(BaseModel):
    """One change."""

    token: str
    at: str
    change: int
    region: str


class History(BaseModel):
    """Changes in the order of time. `next` is the cursor of the next page, or null."""

    counter: str
    entries: list[HistoryEntry]
    next: str | None
