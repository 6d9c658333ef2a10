"""What the API answers, as docs/openapi.json describes it: pydantic models, filled from what the
library returned.

Rule 1: pydantic builds a model's checks for the first request that needs them (defer_build), not at
a cold start.
"""

from typing import Annotated, Any, ClassVar, Literal, TypeVar

from aws_lambda_powertools.event_handler import Response
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_serializer,
)
from pydantic import (
    SerializerFunctionWrapHandler as Serializer,
)

from ledger import Change, Receipt
from ledger.client.message import time_text
from ledger.core.values import Delta

Instant = Annotated[str, BeforeValidator(time_text)]
EXACT = Field(description="exact; it may have more digits than a double")
COUNT = Field(description="how many changes the value sums")
HOME = "name it when you repeat the request in another Region"


class Answer(BaseModel):
    model_config = ConfigDict(from_attributes=True, defer_build=True)


class Sparse(Answer):
    """An answer that lacks some fields where they are 0."""

    lacks: ClassVar[tuple[str, ...]]

    @model_serializer(mode="wrap")
    # without a type, so that its schema stays
    def _without_nothing(self, fields: Serializer):  # type: ignore[no-untyped-def]
        said = fields(self).items()
        return {name: value for name, value in said if value or name not in self.lacks}


class Named(Answer):
    outcome: Literal["recorded", "replayed", "accepted"]
    counter: str
    token: str = Field(description="the ULID that names the delta")
    region: str = Field(description=f"the Region of the delta's lane; {HOME}")
    at: Instant


class Added(Named, Sparse):
    """A change counts, exactly once, from now on."""

    lacks = ("change", "asked")

    change: int = Field(0, description="what counts; absent where you asked for no part")
    asked: int = Field(0, description="the change that you asked for; absent with `change`")


class ProblemDetails(Answer):
    """RFC 9457."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="urn:ledger:problem:<name>, see docs/http-api.md")
    title: str
    status: int
    detail: str


class BulkResult(Answer):
    """The outcome of one change: `added` or `problem`."""

    status: int = Field(description="201, 200 (replayed) or the status of the problem")
    added: Added | None = None
    problem: ProblemDetails | None = None


class BulkResults(Answer):
    """A result for each change, in their order."""

    results: list[BulkResult]


class CounterBalance(Answer):
    """A counter at an instant: each change that the read saw counts exactly once."""

    counter: str
    value: int = EXACT
    count: int = COUNT
    as_of: Instant
    pending: int = Field(description="how many of the changes are still in the tail")
    by_region: dict[str, int]
    cached: bool
    closed: bool = Field(
        description="for a counter with a limit: whether the value is certainly within it"
    )


class CounterValue(Answer):
    """The sum of all changes whose time is before an instant, as far as the table has them now."""

    counter: str
    at: Instant
    value: int = EXACT


class SeriesStep(Answer):
    """The changes whose time is from its start (included) to its end (excluded)."""

    start: Instant
    end: Instant
    change: int = Field(description="their sum")
    count: int = Field(description="how many they are")
    value: int = Field(description="the sum of all changes whose time is before the end")


class CounterSeries(Answer):
    """Steps that follow each other, those without changes too."""

    counter: str
    steps: list[SeriesStep]
    as_of: Instant


class CounterNames(Answer):
    """Names of counters, each once, in no order. `next` is the cursor of the next page, or null.

    A page may have fewer names than its limit, or none, and yet a next one.
    """

    counters: list[str]
    next: str | None


class HistoryEntry(Answer):
    """One change."""

    token: str
    at: Instant
    change: int
    region: str


class History(Answer):
    """Changes in the order of time. `next` is the cursor of the next page, or null."""

    counter: str
    entries: list[HistoryEntry]
    next: str | None


class Held(Answer):
    """A part of the limit is set aside until `until`. What counts then is the clock of the process
    that needs the part.
    """

    id: str = Field(description="names the hold in the paths that capture it and release it")
    counter: str
    amount: int
    until: Instant
    token: str = Field(description="the ULID that names the captured change in the history")
    region: str = Field(description=f"where you first asked for the hold; {HOME}")
    at: Instant


class Captured(Named):
    """The captured change counts, exactly once, from now on; the rest is free."""

    change: int = Field(description="what counts")


class Reservation(Answer):
    """Every counter holds the amount. The holds settle and release the reservation, in any
    Region.
    """

    id: str = Field(description="its idempotency key")
    holds: list[Held]


class Settled(Answer):
    """The cost counts, exactly once, in every counter of the reservation."""

    over: dict[str, int] = Field(
        description=(
            "by counter, how much of the cost its limit refused: that counts in over:<counter>"
        )
    )


class Moved(Answer):
    """The amount left the source and came to the target, exactly once."""

    outcome: Literal["moved"]
    source: str
    target: str
    amount: int
    region: str = Field(description=f"where you first asked for the transfer; {HOME}")
    at: Instant


class Room(Answer):
    """How far a value can go down and up; null where that side has no limit."""

    down: int | None
    up: int | None


class Carrying(Sparse):
    """Of a period, what was carried over. The answer lacks a field that is 0."""

    lacks = ("carried", "took")

    carried: int = Field(
        0, description="what the period passed on to the next one; absent: nothing"
    )
    took: int = Field(0, description="what it got from the period before; absent: nothing")


class CounterStanding(Carrying):
    """Where a limited counter stands, as this Region sees it."""

    counter: str
    value: int = EXACT
    count: int = COUNT
    floor: int | None
    ceiling: int | None
    here: Room = Field(description="the part of `available` that this Region gives alone")
    available: Room = Field(
        description=(
            "what you can take in all Regions together; it includes what expired holds had set "
            "aside"
        )
    )
    moving: Room = Field(description="the part of `available` that is on its way between lanes")
    held: Room = Field(description="what open holds set aside")
    as_of: Instant
    closed: bool = Field(description="whether the value is certainly within the limit")


class PeriodBalance(Carrying):
    """A period of a counter. Without a limit floor, ceiling and available are null.

    The ceiling is as it was set, with what it took, whatever it passed on.
    """

    counter: str
    start: Instant
    end: Instant
    value: int = EXACT
    count: int = COUNT
    floor: int | None
    ceiling: int | None
    available: Room | None = Field(description="what you can take in all Regions together")


class CounterPeriods(Answer):
    """The last periods of a counter that the table still keeps, the oldest first."""

    counter: str
    periods: list[PeriodBalance]


Model = TypeVar("Model", bound=BaseModel)


def filled(model: type[Model], known: object, **given: Any) -> Model:
    """The model's fields as given, and the others as the library's value has them."""
    fields = {name: getattr(known, name) for name in model.model_fields if name not in given}
    return model.model_validate(fields | given)


def named(delta: Delta) -> dict[str, Any]:
    return {
        "counter": delta.lane.counter,
        "token": delta.token,
        "region": delta.lane.region,
        "at": delta.at,
    }


def part_of(change: Change, receipt: Receipt) -> dict[str, int]:
    """What an answer says of a change of which a part may count; of any other, nothing."""
    if not change.partial:
        return {"change": 0, "asked": 0}
    return {"change": receipt.change, "asked": change.change}


def status_of(receipt: Receipt) -> int:
    return 201 if receipt.outcome == "recorded" else 200


def counted(model: type[Model], receipt: Receipt, **given: Any) -> Response[Model]:
    """The answer to the request of one change. A header, too, says that it was replayed."""
    hit = {"Idempotency-Hit": "true"} if receipt.outcome == "replayed" else {}
    return Response(
        status_of(receipt),
        "application/json",
        filled(model, receipt, **named(receipt.delta), **given),
        hit,
    )
