"""Whether a read is a sum of a real set of changes, judged from outside: by what was asked for, not by how it was read.

Rules: a witness counter's value names its changes, because change k is 4^k: a digit above 1 in base 4 is a change
counted twice; of any other counter, `count` changes out of those of the file must be able to give `value`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache

from demo.designs import Sight
from demo.events import WITNESS_CHANGES, Event, is_witness

SUMS_MAX = 200
"""Counters with more changes than this are judged by their number of changes alone."""


class Judge:
    """Knows every change of the events. Thread-safe."""

    def __init__(self, events: Iterable[Event]) -> None:
        changes: dict[str, dict[tuple[str, object], int]] = defaultdict(dict)
        for event in events:
            changes[event.counter][event.key, event.at] = event.change
        self._changes = {counter: tuple(found.values()) for counter, found in changes.items()}

    def is_true_sum(self, counter: str, sight: Sight) -> bool:
        """Whether some set of the counter's changes, none twice, gives what was read."""
        if is_witness(counter):
            return _is_set_of_powers(sight.value)
        changes = self._changes[counter]
        if sight.count is None:
            return True  # nothing to hold it against
        if sight.count > len(changes):
            return False
        return len(changes) > SUMS_MAX or _is_sum(changes, sight.count, sight.value)


def _is_set_of_powers(value: int) -> bool:
    if not 0 <= value < 4**WITNESS_CHANGES:
        return False
    while value:
        value, digit = divmod(value, 4)
        if digit > 1:
            return False
    return True


def _is_sum(changes: tuple[int, ...], count: int, value: int) -> bool:
    shift = value + count * _offset(changes)
    return shift >= 0 and bool(_sums(changes)[count] >> shift & 1)


@cache
def _offset(changes: tuple[int, ...]) -> int:
    return max(0, -min(changes))


@cache
def _sums(changes: tuple[int, ...]) -> list[int]:
    """For each number of changes, the sums they can give: bit s + count * offset stands for the sum s."""
    sums = [1] + [0] * len(changes)
    for change in changes:
        for count in range(len(changes), 0, -1):
            sums[count] |= sums[count - 1] << change + _offset(changes)
    return sums
