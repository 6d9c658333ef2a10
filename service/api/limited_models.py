"""What the API takes and gives of limited counters: holds, their ends, and standings.

Rule 1: As in models.py: nothing is converted, an unknown field is refused, and a limit is the library's own.
Rule 2: How long a hold holds is a number of seconds: a duration of ISO 8601 may be in months, which have no length.
"""

from typing import Literal

from pydantic import BaseModel, Field
from pydantic.config import JsonDict

from ledger.ranges import CHANGE_MAX
from ledger.tokens import HOLD_MS_MAX
from service.api.models import Asked, Counter, InRegion, Strict

HOLD_S_MAX = HOLD_MS_MAX // 1_000
NOT_0: JsonDict = {"not": {"const": 0}}


class NewHold(Strict):
    """A part of a limit to set aside, until it is captured or released, or is over."""

    counter: Counter
    amount: int = Field(
        ge=-CHANGE_MAX,
        le=CHANGE_MAX,
        description="as the change that would count, not 0: below 0 it takes what is left above the floor, above 0 "
        "below the ceiling",
        json_schema_extra=NOT_0,
    )
    expires_s: float = Field(
        ge=0.001,
        le=HOLD_S_MAX,
        allow_inf_nan=False,
        description="seconds from at on, the same on every retry; rounded up by a thousandth at most",
    )
    at: Asked = None
    region: InRegion = None


class Held(BaseModel):
    """A part of the limit is set aside until then, by the clock of who is short of it."""

    id: str = Field(description="names the hold in the paths that capture and release it")
    counter: str
    amount: int
    until: str
    token: str = Field(description="the ULID that names what is captured in the history")
    region: str = Field(description="where the hold was asked for; to be named when another Region repeats the request")
    at: str


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


class Captured(BaseModel):
    """What was captured counts, exactly once, from now on; the rest can be taken again."""

    outcome: Literal["recorded", "replayed", "accepted"]
    counter: str
    change: int = Field(description="what counts")
    token: str
    region: str
    at: str


class Room(BaseModel):
    """How far a value can go down and up; null where that side has no limit."""

    down: int | None
    up: int | None


class CounterStanding(BaseModel):
    """Where a limited counter stands, as this Region sees it."""

    counter: str
    value: int = Field(description="exact; it may be larger than what a double holds")
    count: int = Field(description="how many changes it sums")
    floor: int | None
    ceiling: int | None
    here: Room = Field(description="of what is available, what this Region gives without asking another")
    available: Room = Field(description="what can be taken in all Regions together")
    moving: Room = Field(description="of what is available, what is on its way between lanes")
    held: Room = Field(description="what open holds set aside")
    as_of: str
    closed: bool = Field(description="whether the value is certainly within the limit")
