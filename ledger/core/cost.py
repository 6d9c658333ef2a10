"""What a call costs: `Cost`, the `Meter` that sums it while the call goes on, and an item's size
and units.

Rule 1: requests inside `with Meter() as meter` belong to that meter: a context variable holds it,
and a table reads the variable once for each request, so that the threads and tasks that send for
the table need no context.
Rule 2: code that hands programs to threads of its own takes the meter along: `carried`.
Rule 3: a meter ends only in the context where it was entered: a coroutine that nobody finishes ends
in whatever context the garbage collector runs, perhaps in the middle of another call.
Sources:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
(sizes) and
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html (units)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from decimal import Decimal
from operator import add, attrgetter
from typing import Any, ParamSpec, Self, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Cost:
    """The requests of a call to DynamoDB, and what these consumed, in the Regions that they went
    to. Costs add up.

    - requests: how many operations were sent. attempts: HTTP requests for them, with the SDK's own
      retries.
    - read_units, write_units: as DynamoDB reported them (after a refused condition DynamoDB reports
      none, and AWS's rules give them). They leave out the SDK's earlier attempts, and what the
      other Regions of a global table pay for a write.
    - untold: requests that got no answer, or whose answer did not report what they consumed. Where
      it is not 0 the real units may be more.

    All are fractions where several answers share one request.
    """

    requests: float = 0
    attempts: float = 0
    read_units: float = 0.0
    write_units: float = 0.0
    untold: float = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*map(add, _parts(self), _parts(other)))

    def share(self, among: int) -> Cost:
        """An equal share of it."""
        return self if among == 1 else Cost(*(part / among for part in _parts(self)))


_parts = attrgetter("requests", "attempts", "read_units", "write_units", "untold")


NOTHING = Cost()


class Meter:
    """A cost that grows, from any thread. It counts the requests inside its `with` block."""

    __slots__ = ("_cost", "_lock", "_open", "outer")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cost, self._open = NOTHING, 0
        self.outer: Meter | None = None

    def __enter__(self) -> Self:
        self.outer = _HERE.get()
        _HERE.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: object,
    ) -> None:
        meter = _HERE.get()
        # one that was interrupted as it began did not end
        while meter is not None and meter is not self:
            meter = meter.outer
        if meter is self:
            _HERE.set(self.outer)

    def begin(self) -> None:
        """Note that a request is sent."""
        with self._lock:
            self._open += 1

    def end(self, cost: Cost) -> None:
        """Add what that request cost, now that it has its answer."""
        with self._lock:
            self._open -= 1
            self._cost = cost if self._cost is NOTHING else self._cost + cost

    def add(self, cost: Cost) -> None:
        with self._lock:
            self._cost += cost

    def take(self) -> Cost:
        """The cost since the last `take`; an open request counts as one without a known cost."""
        with self._lock:
            # Rule 4: a request is open from when it is sent until its answer is counted, so that
            # of a call that was cancelled or interrupted counts as one without a known cost
            taken, unanswered = self._cost, self._open
            self._cost, self._open = NOTHING, 0
        return taken + Cost(unanswered, unanswered, untold=unanswered) if unanswered else taken


_HERE: ContextVar[Meter | None] = ContextVar("ledger-meter", default=None)


def here() -> Meter:
    """The meter of the current call; outside of calls a meter that nobody reads."""
    return _HERE.get() or Meter()


def carried(work: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """`work` for the threads of a pool: their requests belong to the current call."""
    context = copy_context()
    return lambda *args, **named: context.copy().run(work, *args, **named)


Item = Mapping[str, Mapping[str, Any]]

# Rule 5: sizes are bytes, a KB is 1,024; items are in the low-level format: `{"pk": {"S": "a"},
# "change": {"N": "-6"}}`. Round up before anything else: a unit is never split, except that an
# eventually consistent read is half of one.
WRITE_UNIT_BYTES, READ_UNIT_BYTES = 1024, 4096
TRANSACTIONAL = 2  # a transaction prepares, then commits: every unit twice


def item_bytes(item: Item) -> int:
    """The bytes of an item: attribute names and values, not the storage overhead, which no
    request pays.
    """
    return sum(len(name.encode()) + value_bytes(value) for name, value in item.items())


def value_bytes(value: Mapping[str, Any]) -> int:
    """The bytes of a value without its name; for sets, which AWS's page leaves out, the sum of
    the elements.
    """
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return number_bytes(content)
        case "B":
            return len(bytes(content))
        case "BOOL" | "NULL":
            return 1
        case "L":
            return 3 + sum(1 + value_bytes(element) for element in content)
        case "M":
            return 3 + item_bytes(content) + len(content)
        case "SS" | "NS" | "BS":
            return sum(value_bytes({kind[0]: element}) for element in content)
    raise ValueError(f"no such attribute type: {kind}")


def number_bytes(number: str) -> int:
    """The bytes of a number, about: 1, 1 for every two significant digits, 1 for a minus; at
    most 21.
    """
    sign, digits, _ = Decimal(number).as_tuple()
    significant = len("".join(map(str, digits)).strip("0"))
    return 1 + (significant + 1) // 2 + (1 if sign and significant else 0)


def write_units(size: int, *, transactional: bool = False) -> int:
    """The write units of one item of this many bytes: 1 for each KB begun, at least 1, twice in a
    transaction.

    A Put or an Update costs the larger of the item before and after, a Delete the item deleted, a
    failed condition the larger of the item that is there and the one in the request. Each further
    Region costs the same again.
    """
    units = max(1, -(-size // WRITE_UNIT_BYTES))
    return units * TRANSACTIONAL if transactional else units


def read_units(size: int, *, consistent: bool, transactional: bool = False) -> float:
    """The read units of this many bytes: 1 for each 4 KB begun, at least 1, half if eventually
    consistent.
    `size` is one item, also in a batch, or the sum of all items of a page of a Query or Scan."""
    units = max(1, -(-size // READ_UNIT_BYTES))
    if transactional:
        return float(units * TRANSACTIONAL)
    return float(units) if consistent else units / 2
