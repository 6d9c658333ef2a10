"""The checks of a reader's arguments: each raises InvalidInput or a subclass of it, before
anything is sent.
"""

from ledger.core import tokens
from ledger.core.checks import check_counter, check_time, plain_text, to_datetime
from ledger.core.errors import InvalidInput, InvalidTime, shown
from ledger.core.requests import Instant
from ledger.core.values import Lane
from reader.balance import Position

SECONDS_MAX = 10**9
PAGE_ENTRIES_MAX = 1_000


def check_count(name: str, count: object) -> None:
    if type(count) is not int or not 1 <= count <= PAGE_ENTRIES_MAX:
        raise InvalidInput(f"{name} is an int from 1 to {PAGE_ENTRIES_MAX:,}, not {shown(count)}.")


def prefix_of(given: object) -> str:
    """The prefix itself; "" is the prefix of all names. Raises InvalidCounter."""
    return "" if plain_text(given) == "" else check_counter(given)


def check_page(limit: object, after: object, kind: type) -> None:
    check_count("limit", limit)
    if after is not None and not isinstance(after, kind):
        raise InvalidInput(f"after is the `next` of an earlier page, not {shown(after)}.")


def seconds(name: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = int.__int__(value) if isinstance(value, int) else float.__float__(value)
        if 0 <= number <= SECONDS_MAX:
            return float(number)
    raise InvalidInput(f"{name} is a number of seconds from 0 to 10**9, not {shown(value)}.")


def above(lane: Lane, since_ms: int | None, after: Position | None) -> str | None:
    """The token above which the wanted entries of a lane begin.

    The same token in two Regions is two entries.
    """
    bounds: list[str | None] = []
    if since_ms is not None and since_ms > 0:
        bounds.append(tokens.last_of(since_ms - 1))
    if after is not None:
        bounds.append(after.token if lane.region <= after.region else tokens.before(after.token))
    return max(filter(None, bounds), default=None)


def past_ms(name: str, at: object, now: Instant) -> int:
    """Milliseconds since 1970 of an instant from 1970 to now. Raises InvalidTime."""
    at_ms = check_time(name, at)
    if not 0 <= at_ms <= now.wall_ms:
        clock = to_datetime(now.wall_ms).isoformat()
        raise InvalidTime(
            f"{name}={to_datetime(at_ms).isoformat()} is before 1970, or after this clock's "
            f"{clock}."
        )
    return at_ms


def bound_ms(name: str, at: object) -> int | None:
    return None if at is None else check_time(name, at)
