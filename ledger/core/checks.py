"""The checks of what a caller passes: each returns the plain value, or raises an error that says
what is wrong.

Rule 1: a check looks at the value's text, number, time or length itself, whatever its class does
with operators and methods: an Enum member passes, and so do the times of pendulum and pandas.
Rule 2: if a caller's value fails while a check looks at it, that is the caller's error, too.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import urlsplit

from ledger.core.errors import (
    InvalidChange,
    InvalidCounter,
    InvalidInput,
    InvalidKey,
    InvalidTime,
    shown,
)
from ledger.core.ranges import CHANGE_MAX
from ledger.core.tokens import HOLD_MS_MAX

KEY_BYTES_MAX = 1_024

AHEAD_MAX_MS = 300_000
"""How far ahead of the clock `at` may be: five minutes."""

_COUNTER = re.compile(r"[!-~]{1,256}")
_PREFIX = re.compile(r"[!-)+->@-~]{0,256}")
"""Without * and ?."""

_REGION = re.compile(r"[a-z0-9-]{1,32}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND, _ZERO = timedelta(milliseconds=1), timedelta(0)


def check_counter(counter: object) -> str:
    """`counter` as plain text; raises InvalidCounter unless it is 1 to 256 printable ASCII
    characters, no spaces.
    """
    if isinstance(counter, str) and _COUNTER.fullmatch(counter):
        return str.__str__(counter)  # the text of an Enum member, not its name
    what = type(counter).__name__
    if isinstance(counter, str):
        what = f"{str.__len__(counter)} characters"
    raise InvalidCounter(
        "A counter's name is 1 to 256 printable ASCII characters without spaces, not "
        f"{shown(counter, 80)} ({what})."
    )


def wrong_prefix(prefix: object) -> str | None:
    """Why it is no prefix of a setting, and what to write; None for a prefix. Every name begins
    with the empty one.

    A name may hold * and ?. A prefix with one looks like a pattern, but would silently apply to no
    counter.
    """
    if type(prefix) is str and _PREFIX.fullmatch(prefix):
        return None
    why = "a prefix is the beginning of a counter's name, printable ASCII characters without spaces"
    if type(prefix) is not str:
        return f"{why}."
    if re.search(r"[*?]", prefix):
        why = f"{why}; it is taken as it is written, so * and ? stand for nothing"
    meant = re.split(r"[*?]", re.sub(r"\s", "", prefix))[0]
    return f"{why}. Write {meant!r}." if _PREFIX.fullmatch(meant) else f"{why}."


def is_url(url: object) -> bool:
    """Whether it is an endpoint: http or https, a host, a port that can be one."""
    try:
        return (
            type(url) is str
            and re.fullmatch(r"https?://\S+", url) is not None
            and urlsplit(url).port != 0
        )
    except ValueError:
        return False


def check_flag(name: str, flag: object, error: type[InvalidInput] = InvalidInput) -> bool:
    """`flag` itself; raises the error for what is no bool, though it may be true or false."""
    if type(flag) is not bool:
        raise error(f"{name}={shown(flag)} is not True or False.")
    return flag


def check_change(change: object) -> int:
    """`change` itself; raises InvalidChange unless it is an `int` (no `bool`) of magnitude at
    most 10**18.
    """
    if not isinstance(change, int) or isinstance(change, bool):
        raise InvalidChange(
            f"A change is an int (money in minor units), not {shown(change)} "
            f"({type(change).__name__}). Nothing was written. Count in the smallest unit, such as "
            "pence."
        )
    number = int.__int__(change)  # the number of an Enum member, whatever its class makes of it
    if abs(number) > CHANGE_MAX:
        raise InvalidChange(
            f"A change has a magnitude of at most 10**18; this one has {number.bit_length()} bits."
        )
    return number


_MADE = {
    str: "Read it by datetime.fromisoformat.",
    **dict.fromkeys(
        (int, float), "For seconds since 1970 use datetime.fromtimestamp(seconds, UTC)."
    ),
}


def check_time(name: str, at: object) -> int:
    """Milliseconds since 1970 of `at`; raises InvalidTime unless it is an aware `datetime`."""
    return to_ms(check_aware(name, at))


def check_aware(name: str, at: object) -> datetime:
    """The plain datetime of `at`, with the offset that its zone has then. Raises InvalidTime for
    anything else than an aware `datetime`."""
    if type(at) is datetime and type(at.tzinfo) is timezone:
        return at  # as nearly every time comes, and the rest would take three times as long
    if not isinstance(at, datetime):
        made = _MADE.get(type(at), "Give one such as datetime.now(UTC).")
        raise InvalidTime(
            f"{name} is an aware datetime, not {shown(at)}. Nothing was written. {made}"
        )
    plain = datetime.combine(datetime.date(at), datetime.timetz(at))
    try:
        year, offset = at.year, plain_length(plain.utcoffset())
    except Exception as failure:  # the time zone is the caller's code
        raise InvalidTime(
            f"{name} has a time zone that raises {type(failure).__name__}."
        ) from failure
    if year != plain.year:  # pandas.NaT, and a pandas.Timestamp after the year 9999
        raise InvalidTime(f"{name} is an aware datetime, not {shown(at)}.")
    if offset is None:
        raise InvalidTime(
            f"{name}={shown(at, 80)} has no time zone. Nothing was written. Use one, as in "
            "datetime.now(UTC)."
        )
    return plain.replace(tzinfo=timezone(offset))


def plain_text(text: object) -> str | None:
    """The text of a `str`, also of an Enum member; None for anything else."""
    return str.__str__(text) if isinstance(text, str) else None


def plain_length(span: object) -> timedelta | None:
    """`span` as a plain timedelta; None for anything else than a timedelta."""
    return timedelta.__add__(span, _ZERO) if isinstance(span, timedelta) else None


def check_at(at_ms: int, clock: Callable[[], int]) -> int:
    """`at_ms` itself, when a change was first requested, in milliseconds since 1970; raises
    InvalidTime where it is ahead or before 1970.
    """
    now_ms = clock()
    if at_ms > now_ms + AHEAD_MAX_MS:
        now = to_datetime(now_ms).isoformat()
        raise InvalidTime(
            f"at={to_datetime(at_ms).isoformat()} is more than five minutes ahead of this clock's "
            f"{now}. Nothing was written. Give the time at which the change was first requested; "
            "if this is that time, set this machine's clock (NTP)."
        )
    if at_ms < 0:
        raise InvalidTime(f"at={to_datetime(at_ms).isoformat()} is before 1970.")
    return at_ms


def _of_length(length: timedelta) -> str:
    """A length of time for a person: Python writes five minutes ago as -1 day, 23:55:00."""
    return f"-{-length}" if length < _ZERO else str(length)


def check_length(expires: object) -> int:
    """How long a hold holds, in milliseconds, rounded up; raises InvalidTime."""
    length = plain_length(expires)
    if length is None:
        raise InvalidTime(
            f"expires is a timedelta such as timedelta(minutes=5), not {shown(expires)}."
        )
    length_ms = -(length // -_MILLISECOND)  # rounded up
    if not 0 < length_ms <= HOLD_MS_MAX:
        raise InvalidTime(
            f"expires={_of_length(length)} is not above 0 and at most "
            f"{HOLD_MS_MAX // 86_400_000} days."
        )
    return length_ms


def check_key(key: object) -> str:
    """`key` as plain text; raises InvalidKey unless it is an idempotency key: 1 to 1,024 bytes
    of UTF-8.
    """
    if key is None:
        raise InvalidKey(
            "An idempotency key is text, and none was given. Nothing was written. Give one, the "
            "same on every retry."
        )
    if not isinstance(key, str):
        raise InvalidKey(
            f"An idempotency key is text, not {type(key).__name__}. Nothing was written. For a "
            "UUID or a ULID give str(key)."
        )
    try:
        size_bytes = len(str.encode(key))
    except UnicodeEncodeError:
        raise InvalidKey("The idempotency key is not valid Unicode (a lone surrogate).") from None
    if not 1 <= size_bytes <= KEY_BYTES_MAX:
        raise InvalidKey(
            f"An idempotency key has 1 to {KEY_BYTES_MAX:,} bytes of UTF-8; this one has "
            f"{size_bytes:,}."
        )
    return str.__str__(key)


def check_region(region: object, error: type[InvalidInput] = InvalidInput) -> str:
    """`region` itself; raises the error unless it has the form of a Region's name."""
    if type(region) is not str or not _REGION.fullmatch(region):
        raise error(f"A Region's name looks like 'eu-west-1', not {shown(region)}.")
    return region


def to_ms(at: datetime) -> int:
    """Milliseconds since 1970 of an aware `datetime`, rounded down."""
    return (at - _EPOCH) // _MILLISECOND


def to_datetime(time_ms: int) -> datetime:
    """The aware `datetime` (UTC) of milliseconds since 1970, as far as `datetime` reaches (the
    years 1 to 9999).
    """
    return _EPOCH + timedelta(milliseconds=max(_FIRST_MS, min(time_ms, LAST_MS)))


_FIRST_MS, LAST_MS = (to_ms(end.replace(tzinfo=UTC)) for end in (datetime.min, datetime.max))
