"""The balances that a `Reader` remembers.

Rule 1: A balance is a whole read's answer, never a mixture.
Rule 2: Its age is counted from the beginning of that read.
Rule 3: Many threads that ask for the same counter at once cause one load. A cache is one process's: what another thread
was loading or changing at a fork stays so in the child for ever.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from cachetools import TTLCache

from ledger.checks import to_ms
from ledger.clocks import Clock
from reader.balance import Balance
from reader.once import Once

COUNTERS_MAX = 10_000
LOADS_AWAITED_MAX = 2
"""How many loads of other threads a read waits for before it makes its own."""


class Cache:
    """Balances that are younger than `ttl` seconds. Thread-safe."""

    def __init__(self, ttl: float, clock: Clock) -> None:
        self._clock = clock
        self._balances: TTLCache[str, Balance] = TTLCache(COUNTERS_MAX, ttl, timer=lambda: clock() / 1000)
        self._condition = threading.Condition()
        self._once = Once(self._balances, self._condition)

    def young(self, counters: Sequence[str], most_s: float) -> dict[str, Balance]:
        """Those that are here and younger than `most_s`, by name."""
        with self._condition:
            self._forget(counters, most_s)
            found = {counter: self._balances.get(counter) for counter in counters}
        return {counter: balance for counter, balance in found.items() if balance is not None}

    def keep(self, balances: Mapping[str, Balance]) -> None:
        with self._condition:
            self._balances.update(balances)

    def balance(self, counter: str, most_s: float, load: Callable[[str], Balance]) -> Balance | None:
        """One that is younger than `most_s`, from here, from another thread's load, or loaded; it is the caller's own.

        None after waiting for loads that had begun too long ago. load(counter) reads one from the table.
        """
        for _ in range(LOADS_AWAITED_MAX):
            with self._condition:
                self._forget([counter], most_s)
            balance, loaded = self._once.get(counter, lambda: load(counter))
            if loaded or self._is_younger(balance, most_s):
                return own(balance, cached=not loaded)
        return None

    def _forget(self, counters: Iterable[str], most_s: float) -> None:
        """Drop balances older than `most_s`, or from the future: a clock that stepped back cannot tell their age."""
        for counter in counters:
            balance = self._balances.get(counter)
            if balance is not None and not self._is_younger(balance, most_s):
                self._balances.pop(counter, None)

    def _is_younger(self, balance: Balance, most_s: float) -> bool:
        return 0 <= self._clock() - to_ms(balance.as_of) < most_s * 1000


def own(balance: Balance, *, cached: bool = False) -> Balance:
    """A balance of the caller's own: what is done to it does not reach the cache."""
    return replace(balance, cached=cached, by_region=dict(balance.by_region))
