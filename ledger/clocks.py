"""The clock and the entropy that a process uses when it is given none."""

import os
import time
from collections.abc import Callable

from ledger import tokens
from ledger.errors import InvalidInput, InvalidTime, shown
from ledger.requests import Instant

Clock = Callable[[], int]
"""Returns milliseconds since 1970."""

Entropy = Callable[[int], bytes]
"""Returns that many random bytes."""

entropy: Entropy = os.urandom


def wall_clock() -> int:
    """Milliseconds since 1970 by this machine's clock."""
    return time.time_ns() // 1_000_000


def checked(clock: Clock) -> Clock:
    """A clock that raises InvalidTime where the given one answers what is no whole number of milliseconds."""
    if not callable(clock):
        raise InvalidInput(f"clock is a function that returns milliseconds since 1970, not {shown(clock)}.")

    def checked_clock() -> int:
        now_ms: object = clock()
        if type(now_ms) is not int or abs(now_ms) > tokens.TIME_MS_MAX:
            raise InvalidTime(f"clock() returns milliseconds since 1970 as an int, not {shown(now_ms)}.")
        return now_ms

    return checked_clock


def checked_entropy(entropy: Entropy) -> Entropy:
    """Entropy that raises InvalidInput where the given one answers something else than `size` bytes."""
    if not callable(entropy):
        raise InvalidInput(f"entropy is a function that returns random bytes, not {shown(entropy)}.")

    def checked_bytes(size: int) -> bytes:
        answer: object = entropy(size)
        if type(answer) is not bytes or len(answer) != size:
            raise InvalidInput(f"entropy({size}) returns {size} bytes, not {shown(answer)}.")
        return answer

    return checked_bytes


def instants(clock: Clock) -> Callable[[], Instant]:
    """What answers `Now`: the given clock beside this machine's monotonic one."""
    return lambda: Instant(clock(), time.monotonic_ns() // 1_000_000)
