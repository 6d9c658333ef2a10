"""A history with its strays: the deltas that a read does not count yet.

Rule 1: `history` has strays only after the next settle, so what must lose nothing asks for them first and reads the
history then: whoever is settled in between is in both, and is taken once.
"""

import heapq
from collections.abc import Iterable, Iterator

from ledger.values import Delta
from reader import Entry


def entry_of(delta: Delta) -> Entry:
    return Entry(delta.token, delta.at, delta.change, delta.lane.region)


def with_strays(history: Iterable[Entry], found: Iterable[Delta]) -> Iterator[Entry]:
    """The entries of a counter in the order of their tokens, each change once."""

    def place(entry: Entry) -> tuple[str, str]:
        return entry.token, entry.region

    of_strays = sorted((entry_of(delta) for delta in found), key=place)
    settled: set[tuple[str, str]] = set()
    names = {place(entry) for entry in of_strays}
    for entry in heapq.merge(history, of_strays, key=lambda entry: entry.token):
        if place(entry) not in names:
            yield entry
        elif place(entry) not in settled:
            settled.add(place(entry))
            yield entry
