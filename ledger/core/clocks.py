"""What a process has of its own: a default clock and entropy, and the things that a fork must not
share.

Rule 1: A fork copies no other thread and leaves held locks held for ever, so an object with
threads, or with a lock that other threads may hold, keeps them in a `PerProcess`.
Rule 2: So a child never waits for something that only its parent has. The child makes its own
before any other code there runs, while it has one thread.
"""

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from ledger.core import tokens
from ledger.core.errors import InvalidInput, InvalidTime, shown
from ledger.core.requests import Instant

Clock = Callable[[], int]
"""Returns milliseconds since 1970."""

Entropy = Callable[[int], bytes]
"""Returns that many random bytes."""

entropy: Entropy = os.urandom


def wall_clock() -> int:
    """Milliseconds since 1970 by this machine's clock."""
    return time.time_ns() // 1_000_000


def checked(clock: Clock) -> Clock:
    """The clock, with a check: it raises InvalidTime where the given one returns no whole number
    of milliseconds.
    """
    if not callable(clock):
        raise InvalidInput(
            f"clock is a function that returns milliseconds since 1970, not {shown(clock)}."
        )
    if clock is wall_clock:  # this file's own, which needs no check
        return clock

    def checked_clock() -> int:
        now_ms: object = clock()
        if type(now_ms) is not int or abs(now_ms) > tokens.TIME_MS_MAX:
            raise InvalidTime(
                f"clock() returns milliseconds since 1970 as an int, not {shown(now_ms)}."
            )
        return now_ms

    return checked_clock


def randomness(entropy: Entropy) -> Callable[[], bytes]:
    """The function that draws the random bytes of a token, with a check: it raises InvalidInput
    where the given one returns others.
    """
    if not callable(entropy):
        raise InvalidInput(
            f"entropy is a function that returns random bytes, not {shown(entropy)}."
        )
    size = tokens.RANDOM_BYTES
    if entropy is os.urandom:  # it needs no check
        return partial(entropy, size)

    def checked_randomness() -> bytes:
        answer: object = entropy(size)
        if type(answer) is not bytes or len(answer) != size:
            raise InvalidInput(f"entropy({size}) returns {size} bytes, not {shown(answer)}.")
        return answer

    return checked_randomness


def instants(clock: Clock) -> Callable[[], Instant]:
    """The function that answers `Now`: by the given clock and this machine's monotonic one."""
    return lambda: Instant(clock(), time.monotonic_ns() // 1_000_000)


Own = TypeVar("Own")


class PerProcess(Generic[Own]):
    """Its `value` is what `make()` returned in this process: a forked child has another than its
    parent.
    """

    def __init__(self, make: Callable[[], Own]) -> None:
        self._make = make
        self.value = make()
        _all.add(self)

    def make_again(self) -> None:
        self.value = self._make()


_all: WeakSet[PerProcess[Any]] = WeakSet()


def _in_the_child() -> None:
    for owned in list(_all):
        owned.make_again()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_in_the_child)
