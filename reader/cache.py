"""The balances that a `Reader` remembers.

Rule 1: A balance is the answer of one whole read, never a mixture.
Rule 2: Its age counts from the beginning of that read, by the wall clock and by the steady one: the
older age counts. Of two reads of a counter it keeps the one that began later.
Rule 3: Many threads that read the same counter at once cause one load: a thread that comes while
another loads waits for it. A load that fails fails for its thread alone, and the next thread loads.
A cache belongs to one process: a load or a change that another thread had begun at a fork would
stay unfinished in the child for ever.
Rule 4: It returns copies: what a caller does to one does not reach the cache.
Rule 5: Who is interrupted, at any line, leaves it whole: the handler of a signal may raise
anywhere. So a change takes the balances out and puts them back by one assignment, and a thread
takes its load out whatever happens to it.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from math import ceil
from queue import Empty, SimpleQueue
from typing import NamedTuple

from cachetools import LRUCache

from ledger.core.checks import to_ms
from ledger.core.requests import Instant, in_time
from reader.balance import Balance

COUNTERS_MAX = 10_000
LOADS_AWAITED_MAX = 2
"""How many loads of other threads a read waits for before it makes its own."""

WAIT_S = 10.0
"""How long it waits for each: a load in a thread that was stopped for good would hold all
others.
"""


class Began(NamedTuple):
    """The beginning of a read: the next of the cache's `numbers`, and when it was."""

    number: int
    at: Instant


class Kept(NamedTuple):
    balance: Balance
    began: Began


Load = SimpleQueue[None]
"""A load that a thread makes: there is something in it when it has ended."""


class Cache:
    """Balances that are younger than a caller allows. It is thread-safe. now: by both clocks."""

    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now = now
        self.numbers = count()
        # `with` it is C, and no signal comes between taking it and giving it back
        self._lock = threading.RLock()
        self._kept: LRUCache[str, Kept] | None = None
        self._loading: dict[str, Load] = {}

    def young(self, counters: Sequence[str], most_s: float) -> dict[str, Balance]:
        """The balances younger than `most_s`, by name.

        It leaves out those from the future: a clock stepped back.
        """
        with self._lock:
            now, there = self._now(), self._kept
            known = {} if there is None else {counter: there.get(counter) for counter in counters}
        return {
            counter: replace(kept.balance, cached=True, by_region=dict(kept.balance.by_region))
            for counter, kept in known.items()
            if kept is not None and _is_young(kept, now, most_s)
        }

    def keep(self, balances: Mapping[str, Balance], began: Began) -> None:
        """Keep what a read found."""
        new = {
            name: Kept(replace(balance, by_region=dict(balance.by_region)), began)
            for name, balance in balances.items()
        }
        with self._lock:
            kept: LRUCache[str, Kept] = LRUCache(COUNTERS_MAX) if self._kept is None else self._kept
            # who is interrupted before it is back leaves an empty cache, never a broken one
            self._kept = None
            for name in new:
                there = kept.get(name)
                if there is None or there.began.number < began.number:
                    kept[name] = new[name]
            self._kept = kept

    def balance(self, counter: str, most_s: float, load: Callable[[], Balance]) -> Balance:
        """A balance younger than `most_s`, from here or from another thread's load; else that of
        load().
        """
        mine = Load()
        try:
            balance = self._known(counter, most_s, mine) or load()
            self._end(counter, mine)
        except BaseException:  # also of an interruption in `_end`
            self._end(counter, mine)
            raise
        return balance

    def _known(self, counter: str, most_s: float, mine: Load) -> Balance | None:
        """A balance that is young enough, now or after other threads' loads.

        None: the caller loads.
        """
        for waits in range(LOADS_AWAITED_MAX + 1):
            with self._lock:
                known = self.young([counter], most_s)
                theirs = mine if known else self._loading.setdefault(counter, mine)
            if theirs is mine or waits == LOADS_AWAITED_MAX:
                return known.get(counter)
            try:
                theirs.get(timeout=WAIT_S)
                theirs.put(None)  # for the next one that waits
            except Empty:
                self._end(counter, theirs)
        return None

    def _end(self, counter: str, load: Load) -> None:
        """Take a load out, if it is still there, and wake a thread that waits for it, which
        wakes the next one.
        """
        with self._lock:
            if self._loading.get(counter) is load:
                del self._loading[counter]
            load.put(None)


def _is_young(kept: Kept, now: Instant, most_s: float) -> bool:
    began = Instant(to_ms(kept.balance.as_of), kept.began.at.steady_ms)
    return in_time(began, now, ceil(most_s * 1_000) - 1)
