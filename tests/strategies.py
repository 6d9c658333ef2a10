"""What hypothesis draws: values that are right at their edges, and what anybody may pass instead
of them.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from typing import Any, cast
from zoneinfo import ZoneInfo

from hypothesis import settings
from hypothesis import strategies as st

from ledger.core import tokens
from ledger.core.errors import shown
from ledger.core.ranges import CHANGE_MAX, SHARD_MAX, VERSION_MAX
from ledger.core.values import Checkpoint, CleanNote, Delta, Lane, Segment


def effort(share: float) -> settings:
    """This share of the profile's examples: a test that costs more is given fewer."""
    assert settings.default is not None
    return settings(max_examples=max(1, round(settings.default.max_examples * share)))


# -- what is right

counters = st.text(
    st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=256
) | st.sampled_from(["#", "!", "~" * 256, "delta#eu-west-1#0#x", "checkpoint", "0#0", "%s{}\\'\""])
changes = st.integers(-CHANGE_MAX, CHANGE_MAX) | st.sampled_from([0, -1, CHANGE_MAX, -CHANGE_MAX])
keys = st.text(min_size=1, max_size=256) | st.sampled_from(
    [" ", "\0", "é" * 512, "x" * 1_024, "\U0001f44d" * 256]
)
lanes = st.builds(
    Lane,
    st.sampled_from(["eu-west-1", "us-east-1"]),
    st.integers(0, 999) | st.just(SHARD_MAX),
    counters,
)
made_tokens = st.builds(
    tokens.make, st.integers(0, tokens.TIME_MS_MAX), st.binary(min_size=10, max_size=10)
)
deltas = st.builds(Delta, lanes, made_tokens, changes)
versions = st.integers(1, VERSION_MAX) | st.just(VERSION_MAX)
clock_ms = st.integers(-tokens.TIME_MS_MAX, tokens.TIME_MS_MAX)
notes = st.builds(CleanNote, lanes, versions, clock_ms)
zones = st.sampled_from(
    [
        *(
            UTC,
            ZoneInfo("Europe/Berlin"),
            ZoneInfo("Asia/Kathmandu"),
            ZoneInfo("Australia/Lord_Howe"),
        ),
        *(
            timezone(timedelta(hours=23, minutes=59)),
            timezone(-timedelta(hours=23, minutes=59, seconds=59)),
        ),
        timezone(timedelta(microseconds=1)),
    ]
)
# a clock shows it twice
FOLDED_HOUR = datetime(2025, 10, 26, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
MISSING_HOUR = datetime(2025, 3, 30, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))  # no clock shows it
datetimes = st.datetimes(timezones=zones, allow_imaginary=True) | st.sampled_from(
    [FOLDED_HOUR, FOLDED_HOUR.replace(fold=1), MISSING_HOUR, MISSING_HOUR.replace(fold=1)]
)


@st.composite
def checkpoints(draw: st.DrawFn) -> Checkpoint:
    count = draw(st.integers(0, 3) | st.integers(0, 10**20 - 1) | st.just(10**20 - 1))
    total = draw(st.integers(-count * CHANGE_MAX, count * CHANGE_MAX) | st.just(count * CHANGE_MAX))
    named = draw(made_tokens), draw(versions), draw(made_tokens), draw(clock_ms)
    return Checkpoint(draw(lanes), total, count, *named)


@st.composite
def segments(draw: st.DrawFn) -> Segment:
    lane = draw(lanes)
    listed = draw(st.dictionaries(made_tokens, changes, max_size=20))
    hi = max([*listed, draw(made_tokens)])
    return Segment.of(
        lane, hi, draw(versions), [Delta(lane, token, listed[token]) for token in sorted(listed)]
    )


# -- what anybody may pass


class Hostile:
    """Nothing can be done with it."""

    def _fails(self, *_: object) -> Any:
        raise RuntimeError("hands off")

    __bool__ = __eq__ = __repr__ = __str__ = __len__ = __lt__ = __add__ = __contains__ = _fails
    __hash__ = None  # type: ignore[assignment]


class Unlike(str):
    """A text that equals nothing, itself included, and has a hash of its own."""

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 7


class Overdrawn(int):
    """A number that says it is another."""

    def __int__(self) -> int:
        return 10**30

    def __abs__(self) -> int:
        return 0

    def __str__(self) -> str:
        return "much"


def _untouchable(base: type, *but: str) -> dict[str, Any]:
    """Members for a subclass of `base`, whose every operator and method raises, but for those
    named.
    """

    def fails(*_: object, **__: object) -> Any:
        raise RuntimeError("hands off")

    kept = {
        "__new__",
        "__init__",
        "__class__",
        "__getattribute__",
        "__init_subclass__",
        "__subclasshook__",
        *but,
    }
    return {name: fails for name in dir(base) if name not in kept and callable(getattr(base, name))}


OPERATORS = {
    cls: type(f"Untouchable{cls.__name__.title()}", (cls,), _untouchable(cls))
    for cls in (datetime, timedelta, int, float, str)
}
"""A subclass of each, whose value is what it was made of and whose operators and methods all
raise.
"""


class BrokenZone(tzinfo):
    def utcoffset(self, _: datetime | None, /) -> timedelta:
        raise KeyError("no such zone")

    def dst(self, _: datetime | None, /) -> None:
        return None

    def tzname(self, _: datetime | None, /) -> None:
        return None


class Name(str, Enum):  # noqa: UP042 -- the older spelling, whose str() is not its text
    COUNTER = "c"
    REGION = "eu-west-1"


class Number(IntEnum):
    ONE = 1


@functools.cache
def _deep(levels: int = 20_000) -> list[Any]:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


ODD: dict[str, Callable[[], object]] = {
    "nothing can be done with it": Hostile,
    "a list of it": lambda: [Hostile()],
    "a dictionary of it": lambda: {"eu-west-1": Hostile(), "us-east-1": Hostile(), "c": Hostile()},
    "a list too deep to print": _deep,
    "a number too long to print": lambda: 10**5_000,
    "a negative one": lambda: -(10**5_000),
    "numbers too long to print": lambda: {"c": [10**5_000]},
    "a text of a megabyte": lambda: "x" * 1_000_000,
    "lone surrogates": lambda: "a\ud800\udfff",
    "a text with a NUL": lambda: "c\0",
    "a text that equals nothing": lambda: Unlike("c"),
    "a Region that equals nothing": lambda: Unlike("eu-west-1"),
    "a number that says it is another": lambda: Overdrawn(5),
    "an Enum's text": lambda: Name.COUNTER,
    "an Enum's Region": lambda: Name.REGION,
    "an Enum's number": lambda: Number.ONE,
    "a number whose operators fail": lambda: OPERATORS[int](3),
    "a fraction whose operators fail": lambda: OPERATORS[float](0.5),
    "a text whose operators fail": lambda: OPERATORS[str]("c"),
    "a long text whose operators fail": lambda: OPERATORS[str]("x" * 2_000),
    "a time whose operators fail": lambda: OPERATORS[datetime](2010, 12, 1, tzinfo=UTC),
    "a time without a zone whose operators fail": lambda: OPERATORS[datetime](2010, 12, 1),
    "a length whose operators fail": lambda: OPERATORS[timedelta](hours=1),
    "a time without a zone": lambda: datetime(2010, 12, 1),
    "a time in a broken zone": lambda: datetime(2010, 12, 1, tzinfo=BrokenZone()),
    "a time in no zone at all": lambda: datetime(
        2010, 12, 1, tzinfo=cast(Callable[[], tzinfo], tzinfo)()
    ),
    "the first time": lambda: datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
    "the last time": lambda: datetime.max.replace(tzinfo=timezone(-timedelta(hours=14))),
    "a day": lambda: date(2010, 12, 1),
    "a fraction": lambda: Fraction(1, 3),
    "a Decimal that is no number": lambda: Decimal("NaN"),
    "a Decimal": lambda: Decimal(1),
    "a class": lambda: str,
    "a function": lambda: lambda *_: "c",
    "a generator": lambda: (each for each in (1, "c", None)),
    "a memory view": lambda: memoryview(b"c"),
    "JSON too deep to read": lambda: "[" * 100_000,
    "a URL that is none": lambda: "http://[",
    "another one": lambda: "http://-_?\x01",
    "digits that are not ASCII": lambda: "\u0661",
}


@dataclass(frozen=True)
class Passed:
    """Something to pass, with a name that can always be printed."""

    name: str
    make: Callable[[], object]

    def __repr__(self) -> str:
        return self.name


_any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=20)
_plain = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), _any_text, st.binary(max_size=20)),
    *(st.complex_numbers(), st.timedeltas(), datetimes),
)
_nested = st.recursive(
    _plain,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(_any_text, inner, max_size=3)
    ),
)
_odd = st.sampled_from([Passed(name, make) for name, make in ODD.items()])
junk = _odd | _nested.map(lambda value: Passed(shown(value, 200), lambda: value))
