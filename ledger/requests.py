"""What a program asks of the table, and what it is sent back.

Rules: the five protocol steps are generators that yield these values and do nothing else, so every point where the
world can change is a visible `yield`; a request says all that its answer depends on; a table that does not know a
request raises TypeError; a failure is a LedgerError, raised at the `yield` that asked. Named tuples, because sixteen
data classes were 4 ms of every cold start: tell them apart by `match` or `isinstance`, never by `==` or truth alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

Item = Mapping[str, Mapping[str, Any]]
"""An item in DynamoDB's own spelling: {"change": {"N": "-6"}}."""

Result = TypeVar("Result")
Program = Generator["Request", Any, Result]
"""A step of the protocol: yields requests, is sent their answers, returns its result."""


class Key(NamedTuple):
    pk: str
    sk: str


class Absent(NamedTuple):
    """Write only if no item has this key."""


class VersionIs(NamedTuple):
    """Write only if the item under this key has this version."""

    version: int


class Put(NamedTuple):
    """PutItem. Answer: None when written; else the item that was there (the condition failed, nothing was written)."""

    item: Item
    condition: Absent | VersionIs | None = None


class PutMany(NamedTuple):
    """Conditional puts (Absent), each on its own, in as few requests as the store allows.

    Answer: for each item, in order, None when written, AlreadyThere, or the LedgerError of that item. Never raises.
    """

    items: tuple[Item, ...]


class AlreadyThere(NamedTuple):
    """The condition of one put of a PutMany failed: nothing was written. The other item, where the store showed it."""

    item: Item | None


class Get(NamedTuple):
    """GetItem. Answer: the item or None. `region` asks another Region's replica."""

    key: Key
    consistent: bool = True
    region: str | None = None


class GetMany(NamedTuple):
    """BatchGetItem, until no key is left unprocessed. Answer: the items or None, in the order of the keys."""

    keys: tuple[Key, ...]
    consistent: bool = True


class Query(NamedTuple):
    """One page of a Query in ascending order: sort keys above `after`, at or below `upto`. Answer: a Page."""

    pk: str
    after: str | None = None
    upto: str | None = None
    limit: int | None = None
    consistent: bool = True


class Page(NamedTuple):
    """`last` is the sort key to go on after, or None when this was the last page."""

    items: tuple[Item, ...]
    last: str | None


class Transact(NamedTuple):
    """TransactWriteItems of conditional puts. Answer: True when all were written, False when a condition failed."""

    puts: tuple[Put, ...]


class DeleteMany(NamedTuple):
    """Deletes without conditions, each on its own. Answer: None. A failure may leave some of them undone."""

    keys: tuple[Key, ...]


class Scan(NamedTuple):
    """One page of a Scan of the whole table, keys only. Answer: a KeyPage."""

    after: Key | None = None


class KeyPage(NamedTuple):
    keys: tuple[Key, ...]
    last: Key | None


class Together(NamedTuple):
    """Several requests at once. Answer: for each, in their order, its answer or its LedgerError. Never raises."""

    requests: tuple[Put | Get | Query, ...]


class Now(NamedTuple):
    """What time is it? Answer: an Instant. Asked of the process, not of the table."""


class Instant(NamedTuple):
    """`wall_ms` since 1970, which may step; `steady_ms` from some origin, which never goes back."""

    wall_ms: int
    steady_ms: int


def in_time(began: Instant, ended: Instant, most_ms: int) -> bool:
    """Whether both clocks agree that no more than `most_ms` passed; a frozen process stops one of them."""
    return 0 <= ended.wall_ms - began.wall_ms <= most_ms and ended.steady_ms - began.steady_ms <= most_ms


Request = Put | PutMany | Get | GetMany | Query | Transact | DeleteMany | Scan | Together | Now


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
