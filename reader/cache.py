"""The balances that a `Reader` remembers.

Rule 1: A balance is the answer of one whole read, never a mixture.
Rule 2: Its age counts from the beginning of that read.
Rule 3: Many threads that read the same counter at once cause one load: a thread that comes while another loads waits
for it. A load that fails fails for its thread alone, and the next thread loads. A cache belongs to one process: a load
or a change that another thread had begun at a fork would stay unfinished in the child for ever.
Rule 4: It returns copies: what a caller does to one does not reach the cache.
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
    """Balances that are younger than `ttl` seconds. It is thread-safe."""

    def __init__(self, ttl: float, clock: Clock) -> None:
        self._clock = clock
        self._balances: TTLCache[str, Balance] = TTLCache(COUNTERS_MAX, ttl * 1_000, timer=clock)
        self._condition = threading.Condition()
        self._loading: dict[str, object] = {}

    def young(self, counters: Sequence[str], most_s: float) -> dict[str, Balance]:
        """The balances younger than `most_s`, by name. It leaves out those from the future: a clock stepped back."""
        with self._condition:
            now_ms = self._clock()
            known = {counter: self._balances.get(counter) for counter in counters}
        return {
            counter: replace(balance, cached=True, by_region=dict(balance.by_region))
            for counter, balance in known.items()
            if balance is not None and 0 <= now_ms - to_ms(balance.as_of) < most_s * 1_000
        }

    def keep(self, balances: Mapping[str, Balance]) -> None:
        kept = {name: replace(found, by_region=dict(found.by_region)) for name, found in balances.items()}
        with self._condition:
            self._balances.update(kept)

    def balance(self, counter: str, most_s: float, load: Callable[[], Balance]) -> Balance:
        """A balance younger than `most_s`, from here or from another thread's load; else that of load()."""
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
