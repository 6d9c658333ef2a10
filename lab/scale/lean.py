"""A table of a million lanes in memory whose requests are charged by AWS's published rules.

Rule 1: It answers what the service and the compactor ask for, as `ledger.memory` does; a test holds the two together,
and its charges to those of `lab.meters`.
Rule 2: Items are kept without their keys, a delta as its change alone, because items as boto3 has them take ten times
as much.
Rule 3: A page of a Query ends at 1 MB. A range that holds nothing is not asked for, as in `ledger.table`.
Rule 4: Other Regions hold the same, at once: what is asked At them is charged as a read there.
Rule 5: What stood in a partition before is copied when it is first asked for (`before`), so that a million lanes may
have a history, and only those that somebody reads take memory for it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from time import process_time
from typing import Any

from lab.meters.charge import Charge
from ledger.conditions import Absent, has
from ledger.cost import item_bytes, number_bytes, read_units, write_units
from ledger.dynamo import ask
from ledger.requests import (
    AlreadyThere,
    At,
    Delete,
    DeleteMany,
    Get,
    GetMany,
    Item,
    Key,
    Page,
    Pause,
    Put,
    PutMany,
    Query,
    Request,
    Together,
    Transact,
    Write,
    becomes,
    holds,
    key_of,
    refusals,
)

PAGE_BYTES = 1024 * 1024
CHANGE, KEY = {"change"}, {"pk", "sk"}

Kept = str | Item
"""A delta's change, or what an item has beside its key."""

Paid = tuple[str, str, str]
"""Who, for what, by which operation."""

LOOK = "look"


class Partition:
    """The items of one partition key, in order. is_whole: what stood here before is among them."""

    __slots__ = ("is_whole", "kept", "keys")

    def __init__(self, keys: Sequence[str] = (), kept: Sequence[Kept] = ()) -> None:
        self.keys, self.kept = list(keys), list(kept)
        self.is_whole = False

    def place_of(self, sk: str) -> int | None:
        place = bisect_left(self.keys, sk)
        return place if place < len(self.keys) and self.keys[place] == sk else None

    def put(self, sk: str, kept: Kept) -> None:
        if not self.keys or sk > self.keys[-1]:
            self.keys.append(sk)
            self.kept.append(kept)
        elif (place := self.place_of(sk)) is not None:
            self.kept[place] = kept
        else:
            place = bisect_left(self.keys, sk)
            self.keys.insert(place, sk)
            self.kept.insert(place, kept)

    def remove(self, sk: str) -> None:
        if (place := self.place_of(sk)) is not None:
            del self.keys[place], self.kept[place]

    def between(self, after: str | None, upto: str | None) -> tuple[int, int]:
        start = 0 if after is None else bisect_right(self.keys, after)
        return start, len(self.keys) if upto is None else bisect_right(self.keys, upto)


Before = Callable[[str], Partition | None]
"""What a partition held before; None: nothing. It is copied, not changed."""


class LeanTable:
    """Who pays is `payer`; for what is the kind of the partition, or LOOK
    for what is read of a lane before it is visited. cpu_s: what answering took."""

    def __init__(self, before: Before | None = None) -> None:
        self.payer = ""
        self._spent: dict[Paid, list[float]] = {}
        self.cpu_s = 0.0
        self._before = before
        self._partitions: dict[str, Partition] = {}

    @property
    def costs(self) -> dict[Paid, Charge]:
        """So far, a copy."""
        return {paid: Charge(int(n), read, int(w), int(r)) for paid, (n, read, w, r) in self._spent.items()}

    def answer(self, request: Request, /) -> Any:
        began = process_time()
        try:
            return self._answer(request)
        finally:
            self.cpu_s += process_time() - began

    def put(self, pk: str, sk: str, change: str) -> None:
        """A producer's delta, without a condition; charged. `answer` does the same in thrice the time."""
        self._of(pk).put(sk, change)
        self._charge("PutItem", pk, 1, write=1)

    def partition(self, pk: str) -> Partition:
        """With what stood there before; not charged."""
        partition = self._of(pk)
        if not partition.is_whole:
            partition.is_whole = True
            before = self._before(pk) if self._before else None
            if before is not None:
                whole = Partition(before.keys, before.kept)
                for sk, kept in zip(partition.keys, partition.kept, strict=True):
                    whole.put(sk, kept)
                partition.keys, partition.kept = whole.keys, whole.kept
        return partition

    def item(self, key: Key) -> Item | None:
        """Not charged."""
        partition = self.partition(key.pk)
        place = partition.place_of(key.sk)
        return _item(key, partition.kept[place]) if place is not None else None

    def _of(self, pk: str) -> Partition:
        partition = self._partitions.get(pk)
        if partition is None:
            partition = self._partitions[pk] = Partition()
        return partition

    def _answer(self, request: Request) -> Any:
        match request:
            case Get(key, consistent):
                item = self.item(key)
                units = read_units(_bytes(item), consistent=consistent)
                self._charge("GetItem", key.pk if consistent else LOOK, 1, units)
                return item
            case Query():
                return self._page(request)
            case GetMany(keys, consistent):
                return self._get_many(keys, consistent)
            case Put() | Delete():
                return self._write(request)
            case PutMany(items):
                answers = self._each(items, lambda item: Put(item, Absent()))
                return tuple(None if there is None else AlreadyThere(there) for there in answers)
            case DeleteMany(items):
                answers = self._each(items, lambda item: Delete(key_of(item), has(item)))
                return tuple(AlreadyThere(there) if there else None for there in answers)
            case Transact():
                return self._transact(request)
            case Together(requests):
                return tuple(map(self._answer, requests))
            case At(_, inner):
                return self._answer(inner)
            case Pause():
                return None
            case _:
                raise TypeError(f"not answered here: {request!r}")

    def _page(self, query: Query) -> Page:
        if ask.is_empty(query):
            return Page((), None)
        partition = self.partition(query.pk)
        start, end = partition.between(query.after, query.upto)
        found: list[Item] = []
        size, of_key = 0, len(f"pksk{query.pk}".encode())
        for place in range(start, min(end, start + query.limit) if query.limit else end):
            kept = partition.kept[place]
            item = _item(Key(query.pk, partition.keys[place]), kept)
            size += of_key + len(partition.keys[place]) + _change_bytes(kept) if type(kept) is str else item_bytes(item)
            found.append(item)
            if size >= PAGE_BYTES:
                break
        units = read_units(size, consistent=query.consistent)
        is_look = not query.consistent and query.limit is not None and query.pk.startswith("delta#")
        self._charge("Query", LOOK if is_look else query.pk, 1, units)
        more = start + len(found) < end
        return Page(tuple(found), partition.keys[start + len(found) - 1] if more else None)

    def _get_many(self, keys: Sequence[Key], consistent: bool) -> tuple[Item | None, ...]:
        found = tuple(map(self.item, keys))
        for n, (key, item) in enumerate(zip(keys, found, strict=True)):
            units = read_units(_bytes(item), consistent=consistent)
            self._charge("BatchGetItem", key.pk, int(n % ask.GET_KEYS_MAX == 0), units)
        return found

    def _write(self, write: Write, operation: str = "", requests: int = 1) -> Any:
        there = self.item(write.key)
        statement_of_nothing = isinstance(write, Delete) and there is None and bool(operation)  # it is no failure
        applied = statement_of_nothing or holds(write, there)
        after = becomes(write, there)
        units = write_units(max(_bytes(there), _bytes(after)))
        name = operation or f"{type(write).__name__}Item"
        self._charge(name, write.key.pk, requests, write=units, applied=applied)
        if not applied:
            return there or {}
        self._store(write.key, after)
        return None

    def _each(self, items: Sequence[Item], write: Callable[[Item], Write]) -> list[Any]:
        """Statements, many a request."""
        name, size = "BatchExecuteStatement", ask.STATEMENTS_MAX
        return [self._write(write(item), name, int(n % size == 0)) for n, item in enumerate(items)]

    def _transact(self, transaction: Transact) -> tuple[Item | None, ...] | None:
        found = [(write, self.item(write.key)) for write in transaction.writes]
        refused = refusals(found)
        for n, (write, there) in enumerate(found):
            after = becomes(write, there)
            units = write_units(max(_bytes(there), _bytes(after)), transactional=True)
            self._charge("TransactWriteItems", write.key.pk, int(n == 0), write=units, applied=refused is None)
            if refused is None:
                self._store(write.key, after)
        return refused

    def _store(self, key: Key, item: Item | None) -> None:
        if item is None:
            self._of(key.pk).remove(key.sk)
        else:
            self._of(key.pk).put(key.sk, _kept(item))

    def _charge(
        self, operation: str, pk: str, requests: int, read: float = 0, write: int = 0, *, applied: bool = True
    ) -> None:
        self._add((self.payer, pk.partition("#")[0], operation), requests, read, write, write if applied else 0)

    def _add(self, paid: Paid, *amounts: float) -> None:
        spent = self._spent.get(paid)
        if spent is None:
            spent = self._spent[paid] = [0, 0, 0, 0]
        for n, amount in enumerate(amounts):
            spent[n] += amount


def _bytes(item: Item | None) -> int:
    match item:
        case None:
            return 0
        case {"pk": {"S": pk}, "sk": {"S": sk}, "change": {"N": change}} if len(item) == len(KEY) + 1:
            return len(f"pksk{pk}{sk}".encode()) + _change_bytes(change)
        case _:
            return item_bytes(item)


@lru_cache(maxsize=1_000)
def _change_bytes(change: str) -> int:
    """Of a delta's change with its name; a delta's sort key is ASCII, so its size is its length."""
    return len("change") + number_bytes(change)


def _kept(item: Item) -> Kept:
    rest = {name: value for name, value in item.items() if name not in KEY}
    return rest["change"]["N"] if rest.keys() == CHANGE and rest["change"].keys() == {"N"} else rest


def _item(key: Key, kept: Kept) -> Item:
    rest = {"change": {"N": kept}} if isinstance(kept, str) else kept
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}, **rest}
