"""Whether a read is true, judged from outside: by what was asked for and acknowledged, not by how it was read.

Rule 1: A witness counter's value names its changes, because change k is 4^k: a digit above 1 in base 4 is a change
counted twice.
Rule 2: Of any other counter, `count` changes out of those of the file must be able to give `value`.
Rule 3: And the changes that the read had to hold must be among them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime
from enum import Enum, auto
from typing import TypeAlias

from lab.demo.runners import Sight
from lab.events import WITNESS_CHANGES, Event, is_witness
from lab.histories.checker import deltas_in

SUMS_MAX = 200  # counters with more changes than this are judged by their number of changes alone
Name: TypeAlias = tuple[str, datetime]  # a change's name among those of its counter: its key and its time in the file


class Verdict(Enum):
    TRUE = auto()
    UNTRUE = auto()  # no set of the counter's changes, none twice, gives what was read
    SHORT = auto()  # some set does, but none that holds what the read had to hold


class Judge:
    """Knows every change of the events. Thread-safe."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._changes: dict[str, dict[Name, int]] = defaultdict(dict)
        for event in events:
            self._changes[event.counter][name_of(event)] = event.change

    def verdict(self, counter: str, sight: Sight, held: Collection[Name] = ()) -> Verdict:
        """What to make of a read that had to hold at least the changes `held`."""
        changes = self._changes[counter]
        if is_witness(counter):
            if sight.value >= 4**WITNESS_CHANGES or deltas_in(sight.value) is None:
                return Verdict.UNTRUE
            return Verdict.TRUE if all(sight.value & changes[name] for name in held) else Verdict.SHORT
        if sight.count is None:
            return Verdict.TRUE  # nothing to hold it against
        if _is_sum(changes, sight.count, sight.value, held):
            return Verdict.TRUE
        return Verdict.SHORT if held and _is_sum(changes, sight.count, sight.value, ()) else Verdict.UNTRUE


def name_of(event: Event) -> Name:
    return event.key, event.at


def base4(value: int) -> str:
    """A witness's value in base 4, the highest change first: 1 for a change that it holds, 2 for one held twice."""
    digits: list[str] = []
    rest = abs(value)
    while rest or len(digits) < WITNESS_CHANGES:
        rest, digit = divmod(rest, 4)
        digits.append(str(digit))
    return ("-" if value < 0 else "") + "".join(reversed(digits))


def _is_sum(changes: dict[Name, int], count: int, value: int, held: Collection[Name]) -> bool:
    """Whether `count` of the changes, those of `held` among them, give `value`."""
    free = [change for name, change in changes.items() if name not in held]
    count, value = count - len(held), value - sum(changes[name] for name in held)
    if not 0 <= count <= len(free):
        return False
    if len(changes) > SUMS_MAX:
        return True
    left_out = len(free) - count
    return _gives(free, count, value) if count <= left_out else _gives(free, left_out, sum(free) - value)


def _gives(changes: list[int], count: int, value: int) -> bool:
    """Whether some `count` of the changes give `value`: bit s + n * offset of sums[n] stands for the sum s of n."""
    offset = max(0, -min(changes, default=0))
    sums = [1] + [0] * count
    for change in changes:
        for number in range(count, 0, -1):
            sums[number] |= sums[number - 1] << change + offset
    shift = value + count * offset
    return shift >= 0 and bool(sums[count] >> shift & 1)
