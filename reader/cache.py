"""The balances that a `Reader` remembers.

Rule 1: A balance is a whole read's answer, never a mixture.
Rule 2: Its age is counted from the beginning of that read.
Rule 3: Many threads that ask for the same counter at once cause one load: who asks while another loads waits for it. A
load that fails fails for its thread alone, and the next one loads. A cache is one process's: what another thread was
loading or changing at a fork stays so in the child for ever.
Rule 4: What it answers is the caller's own: what is done to it does not reach the cache.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from cachetools import TTLCache

from ledger.checks import to_ms
from ledger.clocks import Clock
from reader.balance import Balance

COUNTERS_MAX = 10_000
LOADS_AWAITED_MAX = 2
"""How many loads of other threads a read waits for before it makes its own."""


class Cache:
    """Balances that are younger than `ttl` seconds. Thread-safe."""

    def __init__(self, ttl: float, clock: Clock) -> None:
        self._clock = clock
        self._balances: TTLCache[str, Balance] = TTLCache(COUNTERS_MAX, ttl * 1_000, timer=clock)
        self._condition = threading.Condition()
        self._loading: dict[str, object] = {}

    def young(self, counters: Sequence[str], most_s: float) -> dict[str, Balance]:
        """Those that are here and younger than `most_s`, by name. One from the future is none of them: a clock that
        stepped back cannot tell its age.
        """
        with self._condition:
            now_ms = self._clock()
            known = {counter: self._balances.get(counter) for counter in counters}
        return {
            counter: replace(balance, cached=True, by_region=dict(balance.by_region))
            for counter, balance in known.items()
            if balance is not None and 0 <= now_ms - to_ms(balance.as_of) < most_s * 1_000
        }

    def keep(self, balances: Mapping[str, Balance]) -> None:
        kept = {name: replace(each, by_region=dict(each.by_region)) for name, each in balances.items()}
        with self._condition:
            self._balances.update(kept)

    def balance(self, counter: str, most_s: float, load: Callable[[], Balance]) -> Balance:
        """One that is younger than `most_s`, from here or from another thread's load; else what load() answers, and
        keeps.
        """
        mine = object()
        with self._condition:
            for _ in range(LOADS_AWAITED_MAX):
                found = self.young([counter], most_s)
                if found:
                    return found[counter]
                theirs = self._loading.setdefault(counter, mine)
                if theirs is mine:
                    break
                while self._loading.get(counter) is theirs:
                    self._condition.wait()
        try:
            return load()
        finally:
            with self._condition:
                if self._loading.get(counter) is mine:
                    del self._loading[counter]
                    self._condition.notify_all()
