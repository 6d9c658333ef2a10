"""What a process has of its own: a clock and entropy, where it is given none, and what a fork must not share.

Rule 1: A fork takes no thread along and leaves held locks held for ever, so whoever keeps threads, or a lock that other
threads may hold, keeps them in a `PerProcess`.
Rule 2: So a child never waits for what only its parent has. It is made in the child before any code there runs, while
there is but one thread.
"""

import os
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import WeakSet

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


def instants(clock: Clock) -> Callable[[], Instant]:
    """What answers `Now`: the given clock beside this machine's monotonic one."""
    return lambda: Instant(clock(), time.monotonic_ns() // 1_000_000)


Own = TypeVar("Own")


class PerProcess(Generic[Own]):
    """`value` is what `make()` answered in this process: a forked child has another than its parent."""

    def __init__(self, make: Callable[[], Own]) -> None:
        self._make = make
        self.value = make()
        _all.add(self)

    def make_again(self) -> None:
        self.value = self._make()


_all: WeakSet[PerProcess[Any]] = WeakSet()


def _in_the_child() -> None:
    for each in list(_all):
        each.make_again()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_in_the_child)
