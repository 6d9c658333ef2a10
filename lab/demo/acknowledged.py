"""What a read must hold: the changes that its own Region acknowledged before it, as the third promise says.

Rules, those of docs/protocol.md and no wider:
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
from collections.abc import Callable
from dataclasses import dataclass, field

from lab.demo.judge import Name, name_of
from lab.events import Event


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
