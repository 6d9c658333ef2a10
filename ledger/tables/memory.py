"""A table in memory that answers every request as DynamoDB does: for tests, also those of the
library's users.

Rule 1: It is one Region, one replica, always strongly consistent; nothing replicates by itself.
What can be otherwise in a replica is a method of its own (`_there`, `_seen`, `_sort_keys`, `_land`,
`_now_ms`): the simulator's Replica is such a table, whose items lag, land and replicate.
Rule 2: It never changes an item in place, so an answer stays as it was.
Rule 3: A lane is in the directory with its first delta, pack or gate, as if the service listed it
at once, unless `lists` is False. Every answer has these entries; `items` holds only what was put.
"""

from __future__ import annotations

import threading
from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from typing import Any

from ledger.core import items, requests
from ledger.core.checks import check_flag
from ledger.core.conditions import Absent, has
from ledger.core.errors import InvalidInput, TokenConflict, Unavailable, shown
from ledger.core.requests import Item, Key, Request, Update, Write, key_of
from ledger.core.running import or_error, outcome
from ledger.gate import items as gates
from ledger.lane import directory

TOKEN_MS = 600_000
"""How long it remembers the token of a transaction."""


class MemoryTable:
    """A table in memory. It is thread-safe. `page_size` items make a page of a Query or a Scan.

    `peers` maps the names of other Regions to their tables; a request to a Region that it lacks
    raises Unavailable. With `lists` the directory lists each lane as soon as it has an item, as
    the deployed service does, so that `Reader.counters` names its counter.
    """

    def __init__(
        self,
        *,
        page_size: int = 1_000,
        peers: Mapping[str, MemoryTable] | None = None,
        lists: bool = True,
    ) -> None:
        given: object = {} if peers is None else peers
        if type(page_size) is not int or page_size < 1:
            raise InvalidInput(f"page_size={shown(page_size)} is not an int of at least 1.")
        if not isinstance(given, Mapping):
            raise InvalidInput(f"peers is a mapping by Region, not {shown(given)}.")
        self.page_size = page_size
        self.items: dict[Key, Item] = {}
        self._sorted: dict[str, list[str]] = {}  # the sort keys of each item collection
        self.peers = peers or {}
        self._lists = check_flag("lists", lists)
        self._listed: dict[Key, Item] = {}
        self._tokens: dict[str | None, tuple[tuple[Write, ...], int]] = {}
        self._lock = threading.RLock()

    def answer(self, request: Request, /) -> Any:
        """The answer to a request, as `requests.py` describes it.

        Raises TypeError for anything else.
        """
        if isinstance(request, requests.At):  # without the lock, which the other table may wait for
            return self._answer_at(request.region, request.request)
        with self._lock:
            match request:
                case requests.Get(key, consistent):
                    return self._seen(key, consistent)
                case requests.GetMany(keys, consistent):
                    return tuple(self._seen(key, consistent) for key in keys)
                case requests.Query():
                    return self._page(request)
                case requests.Put() | Update() | requests.Delete():
                    return self._write(request)
                case requests.Transact():
                    return self._transact(request)
                case requests.PutMany(items):
                    return tuple(
                        outcome(or_error(self.answer, requests.Put(item, Absent())))
                        for item in items
                    )
                case requests.DeleteMany(items):
                    return tuple(outcome(or_error(self._delete, item)) for item in items)
                case requests.Pause():
                    return None
                case requests.Scan(after):
                    return self._scan(after)
                case requests.Together(parts):
                    return tuple(or_error(self.answer, part) for part in parts)
                case _:
                    raise TypeError(f"not a request that a table answers: {request!r}")

    def _delete(self, item: Item) -> Any:
        key = key_of(item)
        return None if self._there(key) is None else self._write(requests.Delete(key, has(item)))

    def _write(self, write: Write) -> Any:
        there = self._there(write.key)
        if not requests.holds(write, there):
            return there or {}
        after = requests.becomes(write, there)
        self._store(write.key, after)
        return requests.Written(after or {}) if isinstance(write, Update) and write.shows else None

    def _transact(self, transaction: requests.Transact) -> Any:
        (writes, token), now_ms = transaction, self._now_ms()
        known, at_ms = self._tokens.get(token, (writes, None))
        if at_ms is not None and now_ms - at_ms <= TOKEN_MS:
            if known != writes:
                raise TokenConflict(
                    f"The token {shown(token)} stands for another transaction. Nothing was written."
                )
            return None
        found = [(write, self._there(write.key)) for write in writes]
        refused = requests.refusals(found)
        if refused is not None:
            return refused
        landed = self._land([(write.key, requests.becomes(write, there)) for write, there in found])
        if token is not None:
            self._tokens[token] = writes, now_ms
        return landed

    def _page(self, query: requests.Query) -> requests.Page:
        keys = self._sort_keys(query.pk)
        start = 0 if query.after is None else bisect_right(keys, query.after)
        end = len(keys) if query.upto is None else bisect_right(keys, query.upto)
        size = min(query.limit or self.page_size, self.page_size)
        found: list[Item] = []
        last = None
        for sk in keys[start:end]:
            item = self._seen(Key(query.pk, sk), query.consistent)
            if item is None:
                continue
            if len(found) == size:
                return requests.Page(tuple(found), last)
            found.append(item)
            last = sk
        return requests.Page(tuple(found), None)

    def _answer_at(self, region: str, request: Request) -> Any:
        if region not in self.peers:
            raise Unavailable(
                f"This table has no peer in {region}. Nothing was written. Give `tables=` or "
                "`peers=`."
            )
        return self.peers[region].answer(request)

    def _now_ms(self) -> int:
        return 0  # it has no clock, and forgets no token

    def _there(self, key: Key) -> Item | None:
        """The item that a write finds."""
        return self.items.get(key) or self._listed.get(key)

    def _seen(self, key: Key, consistent: bool) -> Item | None:
        """The item that a read finds."""
        return self.items.get(key) or self._listed.get(key)

    def _sort_keys(self, pk: str) -> Sequence[str]:
        return self._sorted.get(pk, [])

    def _scan(self, after: Key | None) -> requests.KeyPage:
        every = sorted(self.items.keys() | self._listed.keys())
        start = bisect_right(every, after) if after else 0
        found = every[start : start + self.page_size]
        return requests.KeyPage(
            tuple(found), found[-1] if start + len(found) < len(every) else None
        )

    def _land(self, writes: list[tuple[Key, Item | None]]) -> Any:
        """Apply a transaction, whose writes are visible at once; its answer."""
        for key, item in writes:
            self._store(key, item)

    def _store(self, key: Key, item: Item | None) -> None:
        if item is not None:
            if self._lists and key.pk not in self._sorted:
                self._list(key, item)
            self._sort(key)
            self.items[key] = item
        elif self._there(key) is not None:
            self.items.pop(key, None)
            self._listed.pop(key, None)
            self._sorted[key.pk].remove(key.sk)

    def _sort(self, key: Key) -> None:
        if self._there(key) is None:
            insort(self._sorted.setdefault(key.pk, []), key.sk)

    def _list(self, key: Key, item: Item) -> None:
        """Put the lane of a delta or a gate into the directory; the entry retires with the lane."""
        kind, lane = items.lane_of(key.pk) or ("delta", gates.lane_of(key))
        if kind == "delta" and lane is not None:
            entry = directory.key_of(lane)
            self._sort(entry)
            retires = {items.RETIRES: item[items.RETIRES]} if items.RETIRES in item else {}
            self._listed[entry] = {**directory.item_of(lane), **retires}
