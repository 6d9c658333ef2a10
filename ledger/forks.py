"""What each process must have of its own, because a fork takes no thread along and leaves held locks held for ever.

Rule 1: Whoever keeps threads, or a lock that other threads may hold, keeps them in a `PerProcess`.
Rule 2: So a child never waits for what only its parent has. It is made in the child before any code there runs, while
there is but one thread.
"""

import os
from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import WeakSet

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
