"""The balances that a `Reader` remembers.

Rule 1: A balance is the answer of one whole read, never a mixture.
Rule 2: Many who read the same counter at once, threads or tasks, cause one load: who comes while
another loads waits for it. A load that fails fails for its reader alone, and the next one loads.
Rule 3: Who is interrupted, at any line, leaves it whole: the handler of a signal may raise
anywhere.
"""

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from math import ceil
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from cachetools import LRUCache

from ledger.core.checks import to_ms
from ledger.core.requests import Instant, in_time
from ledger.core.running import drive
from reader.balance import Balance

COUNTERS_MAX = 10_000
LOADS_AWAITED_MAX = 2
"""How many loads of other threads a read waits for before it makes its own; a task waits for
all.
"""

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


def _wake(load: Load) -> None:
    load.put(None)


class Cache:
    """Balances that are younger than a caller allows. It is thread-safe. now: by both clocks.

    It belongs to one process: a load or a change that another thread had begun at a fork would stay
    unfinished in the child for ever. wake: who waits for a load. waits_max: how many loads of
    others a read waits for.
    """

    def __init__(
        self,
        now: Callable[[], Instant],
        wake: Callable[[Any], None] = _wake,
        waits_max: float = LOADS_AWAITED_MAX,
    ) -> None:
        self._now, self._wake, self._waits_max = now, wake, waits_max
        self.numbers = count()
        # `with` it is C, and no signal comes between taking it and giving it back
        self._lock = threading.RLock()
        self._kept: LRUCache[str, Kept] | None = None
        self._loading: dict[str, Any] = {}

    def young(self, counters: Sequence[str], most_s: float) -> dict[str, Balance]:
        """The balances younger than `most_s`, by name.

        It leaves out those from the future: a clock stepped back. They are copies: what a caller
        does to one does not reach the cache.
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
        """Keep what a read found: of two reads of a counter the one that began later."""
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
            balance = drive(self.known(counter, most_s, mine), _has_ended) or load()
            self.end(counter, mine)
        except BaseException:  # also of an interruption in `end`
            self.end(counter, mine)
            raise
        return balance

    def known(self, counter: str, most_s: float, mine: Any) -> Generator[Any, bool, Balance | None]:
        """A balance that is young enough, now or after the loads of others; None: the caller makes
        the load `mine`, and ends it.

        It yields each load that it waits for, and is sent whether that ended in time.
        """
        for waits in count():
            with self._lock:
                known = self.young([counter], most_s)
                theirs = mine if known else self._loading.setdefault(counter, mine)
            if theirs is mine or waits == self._waits_max:
                return known.get(counter)
            if not (yield theirs):  # who loads was interrupted, or its answer is late
                self.end(counter, theirs)
        raise AssertionError("unreachable")

    def end(self, counter: str, load: Any) -> None:
        """Take a load out, if it is still there, and wake who waits for it."""
        with self._lock:
            if self._loading.get(counter) is load:
                del self._loading[counter]
            self._wake(load)


def _has_ended(load: Load) -> bool:
    """Wait for a load of another thread; whether it ended in time."""
    try:
        load.get(timeout=WAIT_S)
    except Empty:
        return False
    load.put(None)  # for the next one that waits
    return True


def _is_young(kept: Kept, now: Instant, most_s: float) -> bool:
    # from the beginning of the read, by the clock that says more
    began = Instant(to_ms(kept.balance.as_of), kept.began.at.steady_ms)
    return in_time(began, now, ceil(most_s * 1_000) - 1)
