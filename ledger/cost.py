"""What a call costs: `Cost`, and the `Meter` that sums it while the call goes on.

Rule 1: what is asked inside `with Meter() as meter` belongs to that meter: a context variable holds it, and a table
reads it once, when it is asked, so that the threads and tasks that send for the table need no context.
Rule 2: who hands programs to threads of its own takes the meter along: `carried`.
Rule 3: a meter ends only where it was entered: a coroutine that is thrown away ends in whatever context the garbage
collector runs, perhaps in the middle of another call.
Rule 4: a request is open from when it is sent until its answer is counted, so one whose call was cancelled or
interrupted is one that told nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Cost:
    """What was asked of DynamoDB, and what that consumed, in the Regions that were asked. Costs add up.

    requests: operations that were sent. attempts: HTTP requests for them, with the SDK's own retries. read_units,
    write_units: what DynamoDB said; of a refused condition, which tells nothing, by the rules of `units.py`; without
    the SDK's earlier attempts and what the other Regions of a global table pay for a write. untold: requests that did
    not say what they consumed, or got no answer: where it is not 0 the units are at least these. They are fractions
    where several answers share one request.
    """

    requests: float = 0
    attempts: float = 0
    read_units: float = 0.0
    write_units: float = 0.0
    untold: float = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.requests + other.requests,
            self.attempts + other.attempts,
            self.read_units + other.read_units,
            self.write_units + other.write_units,
            self.untold + other.untold,
        )

    def share(self, among: int) -> Cost:
        """An equal share of it."""
        counts = (self.requests, self.attempts, self.read_units, self.write_units, self.untold)
        return self if among == 1 else Cost(*(each / among for each in counts))


NOTHING = Cost()


class Meter:
    """A cost that grows, whatever threads it comes from. `with` it, what is asked is counted here."""

    __slots__ = ("_cost", "_lock", "_open", "outer")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cost, self._open = NOTHING, 0
        self.outer: Meter | None = None

    def __enter__(self) -> Meter:
        self.outer = _HERE.get()
        _HERE.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        meter = _HERE.get()
        while meter is not None and meter is not self:  # one that was interrupted as it began did not end
            meter = meter.outer
        if meter is self:
            _HERE.set(self.outer)

    def begin(self) -> None:
        """A request is sent."""
        with self._lock:
            self._open += 1

    def end(self, cost: Cost) -> None:
        """What that request cost, now that it has its answer."""
        with self._lock:
            self._open -= 1
            self._cost = cost if self._cost is NOTHING else self._cost + cost

    def add(self, cost: Cost) -> None:
        with self._lock:
            self._cost += cost

    def take(self) -> Cost:
        """The cost since it was taken last; a request that is open told nothing."""
        with self._lock:
            taken, unanswered = self._cost, self._open
            self._cost, self._open = NOTHING, 0
        return taken + Cost(unanswered, unanswered, untold=unanswered) if unanswered else taken


_HERE: ContextVar[Meter | None] = ContextVar("ledger-meter", default=None)


def here() -> Meter:
    """The meter of the call that goes on; one that nobody reads where there is none."""
    return _HERE.get() or Meter()


def carried(work: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """`work` for threads of a pool: what they ask belongs to the call that goes on here."""
    meter = _HERE.get()

    @wraps(work)
    def with_the_meter(*args: Arguments.args, **named: Arguments.kwargs) -> Result:
        before = _HERE.get()
        _HERE.set(meter)
        try:
            return work(*args, **named)
        finally:
            _HERE.set(before)

    return with_the_meter
