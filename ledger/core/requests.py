"""The requests that a program yields, and the answers that it gets (`running.py` drives it).

Rule 1: the protocol's steps are generators that yield these values and do nothing else, so every
point where the world can change is a visible `yield`.
Rule 2: a request says all that its answer depends on; a table that does not know a request raises
TypeError.
Rule 3: a failure is a LedgerError, raised at the `yield` of the request.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from ledger.core.actions import Action, updated
from ledger.core.conditions import Condition
from ledger.core.conditions import Item as Item
from ledger.core.cost import item_bytes
from ledger.core.errors import ItemTooLarge

ITEM_BYTES_MAX = 400 * 1024

Result = TypeVar("Result")


class Key(NamedTuple):
    pk: str
    sk: str


def key_of(item: Item) -> Key:
    """The key of an item; "?" stands for a key attribute that it lacks."""
    return Key(*(str(item.get(name, {}).get("S", "?")) for name in ("pk", "sk")))


def keyed(key: Key, **attributes: Mapping[str, Any]) -> Item:
    """An item of this key with these attributes."""
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}, **attributes}


class Put(NamedTuple):
    """PutItem, IF the condition holds for the item under its key (None: whatever is there). Answer:
    None when written; else the item that was there ({}: none), or AlreadyThere(None) where the role
    may insert and not look."""

    item: Item
    condition: Condition | None = None

    @property
    def key(self) -> Key:
        return key_of(self.item)


class Update(NamedTuple):
    """UpdateItem, which makes the item where there is none. Answer: as for Put; with `shows`
    Written when written; Resent where an earlier attempt at the same request may have been applied.

    Raises TableMismatch when an action does not fit the item, and ItemTooLarge above 400 KB. Its
    expressions have at most 4 KB and 300 operands.
    """

    key: Key
    actions: tuple[Action, ...]
    condition: Condition | None = None
    shows: bool = False


class Written(NamedTuple):
    """An Update's item, as it is since."""

    item: Item


class Delete(NamedTuple):
    """DeleteItem.

    Answer: as for Put; None also when there was nothing and no condition needed it.
    """

    key: Key
    condition: Condition | None = None


Write = Put | Update | Delete


def holds(write: Write, there: Item | None) -> bool:
    """Whether a write's condition holds for the item that is there."""
    return write.condition is None or write.condition.holds(there or {})


def refusals(found: Sequence[tuple[Write, Item | None]]) -> tuple[Item | None, ...] | None:
    """The answer to a transaction of writes, each with the item that is there: None if every
    condition holds.
    """
    refused = tuple(None if holds(write, there) else there or {} for write, there in found)
    return refused if any(there is not None for there in refused) else None


def becomes(write: Write, there: Item | None) -> Item | None:
    """The item after a write to the one that is there (None: none).

    An Update raises ItemTooLarge and TableMismatch.
    """
    match write:
        case Put(item):
            return item
        case Delete():
            return None
    after = updated(there or keyed(write.key), write.actions)
    if item_bytes(after) > ITEM_BYTES_MAX:
        raise ItemTooLarge(
            f"{write.key} would have {item_bytes(after):,} bytes. Nothing was written. No retry "
            "helps."
        )
    return after


class Transact(NamedTuple):
    """TransactWriteItems, of at most 100 writes of different keys. Answer: None when all were
    written; else for each write what was there if its condition failed ({}: nothing), or None if it
    held.

    `token`: any text. The table remembers it for ten minutes, in its Region: it writes the same
    transaction under it once and answers None again; another one raises TokenConflict.
    """

    writes: tuple[Write, ...]
    token: str | None = None


class PutMany(NamedTuple):
    """Conditional puts (Absent), each on its own, in few requests. Answer: for each item, in order,
    None when written, AlreadyThere, or the LedgerError of that item. It never raises."""

    items: tuple[Item, ...]


class AlreadyThere(NamedTuple):
    """The condition of one write of several failed. item: what is there, where the store showed it.
    resent: an earlier attempt at the same request may have put it."""

    item: Item | None
    resent: bool = False


class Resent(dict[str, Any]):
    """The item that made an Update's condition fail, at a later attempt at one request: an earlier
    attempt, whose answer was lost, may be what changed the item."""


class Get(NamedTuple):
    """GetItem. Answer: the item or None."""

    key: Key
    consistent: bool = True


class GetMany(NamedTuple):
    """BatchGetItem, until no key is left unprocessed.

    Answer: the items or None, in the order of the keys.
    """

    keys: tuple[Key, ...]
    consistent: bool = True


class Query(NamedTuple):
    """One page of a Query in ascending order: sort keys above `after`, at or below `upto`.

    Answer: a Page.
    """

    pk: str
    after: str | None = None
    upto: str | None = None
    limit: int | None = None
    consistent: bool = True


class Page(NamedTuple):
    """A page of a Query. last: the sort key to go on after, or None when this was the last page."""

    items: tuple[Item, ...]
    last: str | None


class DeleteMany(NamedTuple):
    """Deletes, each on its own and only while the item still has the attributes given, in few
    requests. Answer: for each None when it is gone, AlreadyThere when another is in its place, or
    its LedgerError. It never raises."""

    items: tuple[Item, ...]


class Pause(NamedTuple):
    """Wait, so that others get the table's throughput. ms: parts of a millisecond, too.

    Answer: None; at once, where the table has no such limit.
    """

    ms: float


class Scan(NamedTuple):
    """One page of a Scan of the whole table, keys only. Answer: a KeyPage."""

    after: Key | None = None


class KeyPage(NamedTuple):
    keys: tuple[Key, ...]
    last: Key | None


class Together(NamedTuple):
    """Several requests at once.

    Answer: for each, in order, its answer or its LedgerError. It never raises.
    """

    requests: tuple[Put | Get | GetMany | Query, ...]


class AtOnce(NamedTuple):
    """Run programs that raise nothing at once. Answer: what each returns, in order. The driver of
    this program gives it, not the table.
    """

    parts: tuple[Generator[Any, Any, Any], ...]


class At(NamedTuple):
    """A request to another Region's endpoint.

    Answer: the inner request's. Raises Unavailable where nobody answers.
    """

    region: str
    request: "Request"


class Now(NamedTuple):
    """What time is it? Answer: an Instant. The driver of this program gives it, not the table."""


class Instant(NamedTuple):
    """`wall_ms` since 1970, which may step; `steady_ms` from some origin, which never goes back."""

    wall_ms: int
    steady_ms: int


def in_time(began: Instant, ended: Instant, most_ms: int) -> bool:
    """Whether both clocks agree that no more than `most_ms` passed: a process that freezes stops
    one of them.
    """
    return (
        0 <= ended.wall_ms - began.wall_ms <= most_ms
        and ended.steady_ms - began.steady_ms <= most_ms
    )


Request = (
    Write
    | Transact
    | PutMany
    | DeleteMany
    | Get
    | GetMany
    | Query
    | Scan
    | Together
    | At
    | AtOnce
    | Pause
    | Now
)
Program = Generator[Request, Any, Result]
"""A step of the protocol: yields requests, is sent their answers, returns its result."""


class Table(Protocol):
    """Anything that answers requests: DynamoDB, a dictionary, a simulator.

    With an attribute `one_at_a_time = True` its answers depend on the order of the requests, so no
    class of this library sends it requests from several threads. With `may_be_cut_off = True` a
    process elsewhere reaches it At its Region, through the table of its own Region.
    """

    def answer(self, request: Request, /) -> Any: ...
