"""What a program asks of the table, and what it is sent back.

Rules: the five protocol steps are generators that yield these values and do nothing else, so every point where the
world can change is a visible `yield`; a request says all that its answer depends on; a table that does not know a
request raises TypeError; a failure is a LedgerError, raised at the `yield` that asked. Named tuples, because sixteen
data classes were 4 ms of every cold start, and `of_its_kind`, because two tuples of the same values are no one request.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

Item = Mapping[str, Mapping[str, Any]]
"""An item in DynamoDB's own spelling: {"change": {"N": "-6"}}."""

Result = TypeVar("Result")
Kind = TypeVar("Kind", bound=tuple[Any, ...])
Program = Generator["Request", Any, Result]
"""A step of the protocol: yields requests, is sent their answers, returns its result."""


def of_its_kind(kind: type[Kind]) -> type[Kind]:
    """Makes a named tuple true, equal to its own kind alone, and without an order: as a data class would be."""

    def equals(self: Any, other: object) -> bool:
        return type(other) is kind and tuple.__eq__(self, other)

    def has_no_order(self: object, other: object) -> bool:
        raise TypeError(f"{kind.__name__} has no order")

    operators: dict[str, Callable[..., Any]] = dict.fromkeys(("__lt__", "__le__", "__gt__", "__ge__"), has_no_order)
    operators |= {
        "__eq__": equals,
        "__ne__": lambda self, other: not equals(self, other),
        "__bool__": lambda self: True,
    }
    for name, operator in operators.items():
        setattr(kind, name, operator)
    return kind


class Key(NamedTuple):
    pk: str
    sk: str


@of_its_kind
class Absent(NamedTuple):
    """Write only if no item has this key."""


@of_its_kind
class VersionIs(NamedTuple):
    """Write only if the item under this key has this version."""

    version: int


@of_its_kind
class Put(NamedTuple):
    """PutItem. Answer: None when written; else the item that was there (the condition failed, nothing was written)."""

    item: Item
    condition: Absent | VersionIs | None = None


@of_its_kind
class PutMany(NamedTuple):
    """Conditional puts (Absent), each on its own, in as few requests as the store allows.

    Answer: for each item, in order, None when written, AlreadyThere, or the LedgerError of that item. Never raises.
    """

    items: tuple[Item, ...]


@of_its_kind
class AlreadyThere(NamedTuple):
    """The condition of one write of several failed: nothing was written. The other item, where the store showed it."""

    item: Item | None


@of_its_kind
class Get(NamedTuple):
    """GetItem. Answer: the item or None. `region` asks another Region's replica."""

    key: Key
    consistent: bool = True
    region: str | None = None


@of_its_kind
class GetMany(NamedTuple):
    """BatchGetItem, until no key is left unprocessed. Answer: the items or None, in the order of the keys."""

    keys: tuple[Key, ...]
    consistent: bool = True


@of_its_kind
class Query(NamedTuple):
    """One page of a Query in ascending order: sort keys above `after`, at or below `upto`. Answer: a Page."""

    pk: str
    after: str | None = None
    upto: str | None = None
    limit: int | None = None
    consistent: bool = True


@of_its_kind
class Page(NamedTuple):
    """`last` is the sort key to go on after, or None when this was the last page."""

    items: tuple[Item, ...]
    last: str | None


@of_its_kind
class Transact(NamedTuple):
    """TransactWriteItems of conditional puts. Answer: True when all were written, False when a condition failed."""

    puts: tuple[Put, ...]


@of_its_kind
class DeleteMany(NamedTuple):
    """Deletes, each on its own and only while the item still has the attributes given, in few requests.

    Answer: for each item, in order, None when it is gone, AlreadyThere when another is in its place (which stays), or
    the LedgerError of that item. Never raises.
    """

    items: tuple[Item, ...]


@of_its_kind
class Pause(NamedTuple):
    """Wait, so that others get the table's throughput. Answer: None; at once, where the table has no such limit."""

    ms: int


@of_its_kind
class Scan(NamedTuple):
    """One page of a Scan of the whole table, keys only. Answer: a KeyPage."""

    after: Key | None = None


@of_its_kind
class KeyPage(NamedTuple):
    keys: tuple[Key, ...]
    last: Key | None


@of_its_kind
class Together(NamedTuple):
    """Several requests at once. Answer: for each, in their order, its answer or its LedgerError. Never raises."""

    requests: tuple[Put | Get | Query, ...]


@of_its_kind
class Now(NamedTuple):
    """What time is it? Answer: an Instant. Asked of the process, not of the table."""


@of_its_kind
class Instant(NamedTuple):
    """`wall_ms` since 1970, which may step; `steady_ms` from some origin, which never goes back."""

    wall_ms: int
    steady_ms: int


def in_time(began: Instant, ended: Instant, most_ms: int) -> bool:
    """Whether both clocks agree that no more than `most_ms` passed; a frozen process stops one of them."""
    return 0 <= ended.wall_ms - began.wall_ms <= most_ms and ended.steady_ms - began.steady_ms <= most_ms


Request = Put | PutMany | Get | GetMany | Query | Transact | DeleteMany | Pause | Scan | Together | Now


class Table(Protocol):
    """Whatever answers requests: DynamoDB (`table.py`), a dictionary (`memory.py`), a simulator.

    One whose answers depend on the order of the requests may say so with an attribute `one_at_a_time = True`; then no
    class of this library asks it from several threads.
    """

    def answer(self, request: Request, /) -> Any: ...


def run(program: Generator[Any, Any, Result], table: Table, now: Callable[[], Instant]) -> Result:
    """Drive a program to its end: ask the table what it yields, send it the answers, raise failures where it asked."""
    try:
        request = next(program)
        while True:
            try:
                answer = now() if isinstance(request, Now) else table.answer(request)
            except Exception as failure:
                request = program.throw(failure)
            else:
                request = program.send(answer)
    except StopIteration as end:
        result: Result = end.value
        return result
