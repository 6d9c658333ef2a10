"""Whether a read is true, judged from outside: by what was asked for and acknowledged, not by how it was read.

Rule 1: A witness counter's value names its changes, because change k is 4^k: a digit above 1 in base 4 is a change
counted twice.
Rule 2: Of any other counter, `count` changes out of those of the file must be able to give `value`.
Rule 3: And the changes that the read had to hold must be among them: those that its own Region acknowledged before it,
as the third promise of docs/protocol.md says and no wider:

- A change in time, acknowledged within the lateness of its `at` at home, is demanded there of every read that begins
  later, for ever.
- A change that came late may be a stray: it is demanded once a compactor that began after it has settled its home.
- A change that failed over is demanded in the Region that took it until its home may have got it late: until its time
  and the lateness are over, and the link that was cut meanwhile is about to be healed.
- What another Region acknowledged is not demanded.
"""

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import TypeAlias

from lab.designs.design import Sight
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


@dataclass(slots=True, eq=False)
class Ack:
    """One change's first acknowledgement in one Region; instants in seconds of the monotonic clock."""

    name: Name
    at_s: float
    in_time: bool
    until_s: float = math.inf
    apart: bool = False  # the link has been cut ever since, so that nothing that another Region did can hide it

    def holds(self, ended_s: float) -> bool:
        """Whether a read that ended then had to hold it."""
        return self.apart or ended_s < self.until_s


@dataclass(slots=True)
class _Region:
    acks: dict[str, dict[Name, Ack]] = field(default_factory=lambda: defaultdict(dict))
    settled_s: float = -math.inf  # what was acknowledged at home before this is in the value


class Acknowledged:
    """What one design acknowledged, where and when. Thread-safe; `now` and `wall` give seconds."""

    def __init__(
        self, lateness_ms: int, now: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self._lateness_s, self._now, self._wall = lateness_ms / 1_000, now, wall
        self._lock = threading.Lock()
        self._regions: dict[str, _Region] = defaultdict(_Region)
        self._cut = False
        self._apart: list[Ack] = []

    def add(self, event: Event, asked_s: float, home: str, region: str) -> None:
        """`region` has just acknowledged the event, which was first asked for in `home` at `asked_s` of the wall."""
        with self._lock:
            acks = self._regions[region].acks[event.counter]
            name, now = name_of(event), self._now()
            left_s = asked_s + self._lateness_s - self._wall()
            if name in acks or (region != home and left_s <= 0):
                return
            ack = acks[name] = Ack(name, now, left_s > 0)
            if region != home:
                ack.until_s, ack.apart = now + left_s, self._cut
                self._apart += [ack] * ack.apart

    def demanded(self, counter: str, region: str) -> list[Ack]:
        """What a read of `counter` in `region` that begins now must hold, if `holds` says so when it ended."""
        with self._lock:
            here = self._regions[region]
            return [ack for ack in here.acks[counter].values() if ack.in_time or ack.at_s < here.settled_s]

    def settled(self, region: str, began_s: float) -> None:
        """The job that settles lanes of `region` is done; it began at `began_s`."""
        with self._lock:
            self._regions[region].settled_s = began_s

    def cut(self) -> None:
        """The link between the Regions is cut."""
        with self._lock:
            self._cut = True

    def healing(self) -> None:
        """The link is about to be whole again."""
        with self._lock:
            self._cut = False
            apart, self._apart = self._apart, []
            for ack in apart:
                ack.until_s, ack.apart = max(ack.until_s, self._now()), False
