"""A table in memory that answers every request as DynamoDB does: for tests, also those of the library's users.

Rule 1: One Region, one replica, strongly consistent always.
Rule 2: Items are never changed in place, so what was answered stays as it was.
Rule 3: A request it does not know is a TypeError.
Rule 4: Nothing replicates by itself.
Rule 5: A lane is in the directory with its first delta, pack or gate, as if the service listed it at once, unless
`lists` is False. Every answer has what is listed so; `items` holds what was put and nothing besides.
"""

from __future__ import annotations

import threading
from bisect import bisect_right, insort
from collections.abc import Mapping
from typing import Any

from ledger import items
from ledger.conditions import Absent, has
from ledger.errors import InvalidInput, LedgerError, TokenConflict, Unavailable, shown
from ledger.gate import items as gates
from ledger.lane import directory
from ledger.requests import (
    AlreadyThere,
    At,
    Delete,
    DeleteMany,
    Get,
    GetMany,
    Item,
    Key,
    KeyPage,
    Page,
    Pause,
    Put,
    PutMany,
    Query,
    Request,
    Scan,
    Together,
    Transact,
    Update,
    Write,
    Written,
    becomes,
    holds,
    key_of,
    refusals,
)


class MemoryTable:
    """A table in memory. Thread-safe. `page_size` items make a page of a Query or a Scan.

    `peers` maps the names of other Regions to their tables, for requests At them; a Region that is not there is
    Unavailable. `lists`: each lane that is written to is in the directory, as the deployed service has it, so that
    `Reader.counters` names its counter.
    """

    def __init__(
        self, *, page_size: int = 1_000, peers: Mapping[str, MemoryTable] | None = None, lists: bool = True
    ) -> None:
        given: object = peers
        if type(page_size) is not int or page_size < 1:
            raise InvalidInput(f"page_size={shown(page_size)} is not an int of at least 1.")
        if given is not None and not isinstance(given, Mapping):
            raise InvalidInput(f"peers is a mapping by Region, not {shown(given)}.")
        if type(lists) is not bool:
            raise InvalidInput(f"lists={shown(lists)} is not True or False.")
        self.items: dict[Key, Item] = {}
        self._sort_keys: dict[str, list[str]] = {}  # of each item collection, in order
        self.page_size = page_size
        self.peers = peers or {}
        self._lists = lists
        self._listed: dict[Key, Item] = {}
        self._tokens: dict[str, tuple[Write, ...]] = {}
        self._lock = threading.RLock()

    def answer(self, request: Request, /) -> Any:
        """The answer to a request, as `requests.py` describes it. Raises TypeError for anything else."""
        if isinstance(request, At):
            if request.region not in self.peers:
                raise Unavailable(f"This table has no peer {request.region}. Nothing was written.")
            return self.peers[request.region].answer(request.request)
        with self._lock:
            match request:
                case Put() | Update() | Delete():
                    return self._write(request)
                case PutMany(items):
                    answers = (self.answer(Put(item, Absent())) for item in items)
                    return tuple(None if there is None else AlreadyThere(there) for there in answers)
                case Get(key):
                    return self._there(key)
                case GetMany(keys):
                    return tuple(map(self._there, keys))
                case Query():
                    return self._page(request)
                case Transact():
                    return self._transact(request)
                case DeleteMany(items):
                    answers = (self._write(Delete(key_of(item), has(item))) for item in items)
                    return tuple(AlreadyThere(there) if there else None for there in answers)
                case Pause():
                    return None
                case Scan(after):
                    every = sorted(self.items.keys() | self._listed.keys())
                    start = bisect_right(every, after) if after else 0
                    found = every[start : start + self.page_size]
                    return KeyPage(tuple(found), found[-1] if start + len(found) < len(every) else None)
                case Together(requests):
                    return tuple(self._or_error(each) for each in requests)
                case _:
                    raise TypeError(f"not a request that a table answers: {request!r}")

    def _or_error(self, request: Request) -> Any:
        try:
            return self.answer(request)
        except LedgerError as error:
            return error

    def _write(self, write: Write) -> Any:
        there = self._there(write.key)
        if not holds(write, there):
            return there or {}
        self._store(write.key, becomes(write, there))
        return Written(self.items[write.key]) if isinstance(write, Update) and write.shows else None

    def _transact(self, transaction: Transact) -> tuple[Item | None, ...] | None:
        writes, token = transaction
        if token is not None and token in self._tokens:
            if self._tokens[token] != writes:
                raise TokenConflict(f"The token {shown(token)} stands for another transaction. Nothing was written.")
            return None
        found = [(write, self._there(write.key)) for write in writes]
        refused = refusals(found)
        if refused is not None:
            return refused
        for key, item in [(write.key, becomes(write, there)) for write, there in found]:
            self._store(key, item)
        if token is not None:
            self._tokens[token] = writes
        return None

    def _there(self, key: Key) -> Item | None:
        return self.items.get(key) or self._listed.get(key)

    def _store(self, key: Key, item: Item | None) -> None:
        there = self._there(key) is not None
        if item is None and there:
            self.items.pop(key, None)
            self._listed.pop(key, None)
            self._sort_keys[key.pk].remove(key.sk)
        elif item is not None:
            if self._lists and key.pk not in self._sort_keys:
                self._list(key)
            self._sort(key, there)
            self.items[key] = item

    def _sort(self, key: Key, there: bool) -> None:
        if not there:
            insort(self._sort_keys.setdefault(key.pk, []), key.sk)

    def _list(self, key: Key) -> None:
        """The lane of a delta or a gate is in the directory from here on."""
        kind, lane = items.lane_of(key.pk) or ("delta", gates.lane_of(key))
        if kind == "delta" and lane is not None:
            entry = directory.key_of(lane)
            self._sort(entry, self._there(entry) is not None)
            self._listed[entry] = directory.item_of(lane)

    def _page(self, query: Query) -> Page:
        keys = self._sort_keys.get(query.pk, [])
        start = 0 if query.after is None else bisect_right(keys, query.after)
        end = len(keys) if query.upto is None else bisect_right(keys, query.upto)
        found = keys[start : min(end, start + min(query.limit or self.page_size, self.page_size))]
        more = start + len(found) < end
        held = (self._there(Key(query.pk, sk)) for sk in found)
        return Page(tuple(item for item in held if item is not None), found[-1] if more else None)
