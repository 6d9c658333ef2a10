"""One load for all threads that ask for the same thing at once.

Rule 1: Who asks while another thread loads waits for it and takes what it put into the cache.
Rule 2: A load that fails fails for its thread alone, and the next one loads. cachetools has this as `condition`, but
not in the versions before 6 that google-auth holds many an environment to.
"""

import threading
from collections.abc import Callable, MutableMapping
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Once(Generic[Value]):
    """Loads into `cache`, under `condition`, which guards every other use of `cache` too."""

    def __init__(self, cache: MutableMapping[str, Value], condition: threading.Condition) -> None:
        self._cache = cache
        self._condition = condition
        self._loading: set[str] = set()

    def get(self, key: str, load: Callable[[], Value]) -> tuple[Value, bool]:
        """What the cache has, or has after another thread's load; else what `load()` gives. And whether that was so."""
        with self._condition:
            self._condition.wait_for(lambda: key not in self._loading)
            known = self._cache.get(key)
            if known is not None:
                return known, False
            self._loading.add(key)
        try:
            value = load()
            with self._condition:
                self._cache[key] = value
            return value, True
        finally:
            with self._condition:
                self._loading.remove(key)
                self._condition.notify_all()
